#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pool/pool.h"

#define MIB        (UINT64_C(1) << 20)
#define BLOCKS_MAX 4096u

/* A source of numbered blocks: the pool never looks into one, so none has memory. */
struct fake {
    struct pool_source source;
    uint64_t capacity;
    uint64_t taken;
    unsigned calls;
    unsigned fail_at; /* this call of alloc fails; 0: none */
    int fail_code;
    unsigned live;
    bool is_live[BLOCKS_MAX];
    uint64_t size[BLOCKS_MAX];
    unsigned made;
};

static int fake_alloc(void *user, uint64_t size, void **ret_block, struct err *e)
{
    struct fake *f = user;
    if (++f->calls == f->fail_at) {
        return err_set(e, f->fail_code, "this call fails");
    }
    ck_assert_uint_lt(f->made, BLOCKS_MAX);
    ck_assert_uint_eq(size % POOL_ALIGN, 0);
    if (size > f->capacity - f->taken) {
        return err_set_vendor(e, ERR_DEVICE_MEMORY, -4, "the device is full");
    }
    f->taken += size;
    f->live++;
    f->size[f->made] = size;
    f->is_live[f->made] = true;
    *ret_block = &f->is_live[f->made++];
    return 0;
}

static void fake_free(void *user, void *block, uint64_t size)
{
    struct fake *f = user;
    size_t i = (size_t)((bool *)block - f->is_live);
    ck_assert(f->is_live[i]);
    ck_assert_uint_eq(f->size[i], size);
    f->is_live[i] = false;
    f->taken -= size;
    f->live--;
}

static struct fake fake;
static struct pool *pool;

static void start(uint64_t capacity, uint64_t limit)
{
    struct err e = ERR_INIT;
    memset(&fake, 0, sizeof fake);
    fake.capacity = capacity;
    fake.fail_code = ERR_DEVICE_MEMORY;
    fake.source = (struct pool_source){.user = &fake, .alloc = fake_alloc, .free = fake_free};
    ck_assert_int_eq(pool_create(&fake.source, limit, &pool, &e), 0);
}

static void check(void)
{
    struct err e = ERR_INIT;
    ck_assert_msg(pool_check(pool, &e) == 0, "%s", e.text);
}

static void stop(void)
{
    check();
    pool_destroy(pool);
    ck_assert_uint_eq(fake.live, 0);
    ck_assert_uint_eq(fake.taken, 0);
}

static struct pool_stats stats(void)
{
    struct pool_stats s;
    pool_stats(pool, &s);
    return s;
}

static struct pool_piece take(uint64_t size)
{
    struct err e = ERR_INIT;
    struct pool_piece piece = {0};
    ck_assert_msg(pool_alloc(pool, size, &piece, &e) == 0, "%s", e.text);
    ck_assert_ptr_nonnull(piece.block);
    ck_assert_uint_ge(piece.size, size);
    ck_assert_uint_eq(piece.offset % POOL_ALIGN, 0);
    return piece;
}

START_TEST(classes_waste_an_eighth_at_most)
{
    for (uint64_t size = 1; size < (UINT64_C(1) << 40); size += size / 37 + 1) {
        uint64_t class = pool_class_bytes(size);
        ck_assert_uint_ge(class, size);
        ck_assert_uint_eq(class % POOL_ALIGN, 0);
        ck_assert_uint_eq(pool_class_bytes(class), class);
        ck_assert(class - size < POOL_ALIGN || (class - size) * 8 <= size);
    }
    ck_assert_uint_eq(pool_class_bytes(0), 0);
    ck_assert_uint_eq(pool_class_bytes(UINT64_MAX), 0);
    ck_assert_uint_eq(pool_class_bytes(UINT64_C(1) << 62), UINT64_C(1) << 62);
}
END_TEST

START_TEST(small_pieces_share_a_chunk)
{
    start(64 * MIB, 64 * MIB);
    struct pool_piece a = take(1);
    struct pool_piece b = take(256);
    struct pool_piece c = take(300);
    ck_assert_ptr_eq(a.block, b.block);
    ck_assert_uint_ne(a.offset, b.offset);
    ck_assert_ptr_ne(a.block, c.block);
    ck_assert_uint_eq(fake.calls, 2);
    ck_assert_uint_eq(stats().size, 2 * POOL_CHUNK_BYTES);
    ck_assert_uint_eq(stats().used, 256 + 256 + 512);
    ck_assert_uint_eq(stats().live, 3);
    pool_free(pool, &a);
    pool_free(pool, &b);
    pool_free(pool, &c);
    ck_assert_ptr_null(a.owner);
    pool_free(pool, &a);
    ck_assert_uint_eq(stats().live, 0);
    ck_assert_uint_eq(stats().used, 0);
    ck_assert_uint_eq(stats().peak, 1024);
    ck_assert_uint_eq(stats().cached, 2 * POOL_CHUNK_BYTES);
    stop();
}
END_TEST

START_TEST(a_chunk_is_used_up_before_the_next)
{
    enum { PIECES = POOL_CHUNK_BYTES / POOL_ALIGN };
    static struct pool_piece piece[PIECES + 1];
    static bool seen[PIECES];
    start(64 * MIB, 64 * MIB);
    for (unsigned i = 0; i < PIECES; i++) {
        piece[i] = take(POOL_ALIGN);
        ck_assert(!seen[piece[i].offset / POOL_ALIGN]);
        seen[piece[i].offset / POOL_ALIGN] = true;
    }
    ck_assert_uint_eq(fake.calls, 1);
    piece[PIECES] = take(POOL_ALIGN);
    ck_assert_uint_eq(fake.calls, 2);
    check();
    for (unsigned i = 0; i <= PIECES; i++) {
        pool_free(pool, &piece[i]);
    }
    stop();
}
END_TEST

START_TEST(large_blocks_are_kept_and_reused)
{
    start(64 * MIB, 64 * MIB);
    struct pool_piece a = take(3 * MIB);
    void *block = a.block;
    pool_free(pool, &a);
    ck_assert_uint_eq(fake.live, 1);
    ck_assert_uint_eq(stats().cached, 3 * MIB);
    struct pool_piece b = take(3 * MIB - 1000);
    ck_assert_ptr_eq(b.block, block);
    ck_assert_uint_eq(stats().hits, 1);
    ck_assert_uint_eq(stats().driver_calls, 1);
    pool_free(pool, &b);
    stop();
}
END_TEST

START_TEST(an_empty_chunk_serves_other_sizes)
{
    start(POOL_CHUNK_BYTES, POOL_CHUNK_BYTES);
    struct pool_piece a = take(256);
    pool_free(pool, &a);
    struct pool_piece b = take(100 * 1000);
    ck_assert_uint_eq(fake.calls, 1);
    pool_free(pool, &b);
    stop();
}
END_TEST

START_TEST(refusals_name_wanted_and_free)
{
    struct err e = ERR_INIT;
    struct pool_piece piece = {0};
    start(1024 * MIB, 10 * MIB);
    struct pool_piece a = take(4 * MIB);
    ck_assert_int_eq(pool_alloc(pool, 7 * MIB, &piece, &e), ERR_DEVICE_MEMORY);
    ck_assert_ptr_nonnull(strstr(e.text, "7340032 bytes"));
    ck_assert_ptr_nonnull(strstr(e.text, "6291456 of 10485760"));
    ck_assert_ptr_null(piece.owner);
    ck_assert_int_eq(pool_alloc(pool, 0, &piece, &e), ERR_INVALID);
    ck_assert_int_eq(pool_alloc(pool, UINT64_MAX, &piece, &e), ERR_DEVICE_MEMORY);
    ck_assert_int_eq(pool_alloc(pool, UINT64_C(1) << 63, &piece, &e), ERR_DEVICE_MEMORY);
    ck_assert_uint_eq(stats().failures, 3);
    ck_assert_uint_eq(stats().live, 1);
    pool_free(pool, &a);
    stop();
}
END_TEST

START_TEST(what_is_called_free_can_be_had)
{
    start(1024 * MIB, 11 * MIB);
    struct pool_piece a = take(300);
    struct pool_piece b = take(MIB + 77);
    struct pool_piece c = take(stats().largest_free);
    ck_assert_uint_eq(stats().size, 11 * MIB);
    ck_assert_uint_eq(stats().largest_free, 512);
    struct pool_piece d = take(512);
    pool_free(pool, &a);
    pool_free(pool, &b);
    pool_free(pool, &c);
    pool_free(pool, &d);
    ck_assert_uint_eq(stats().largest_free, 11 * MIB);
    struct pool_piece all = take(11 * MIB);
    pool_free(pool, &all);
    stop();
}
END_TEST

START_TEST(a_small_limit_serves_small_requests)
{
    start(MIB, MIB / 2);
    struct pool_piece a = take(1000);
    struct pool_piece b = take(200 * 1000);
    check();
    pool_free(pool, &a);
    pool_free(pool, &b);
    stop();
}
END_TEST

START_TEST(a_full_device_takes_back_what_is_cached)
{
    start(8 * MIB, 1024 * MIB);
    struct pool_piece a = take(5 * MIB);
    pool_free(pool, &a);
    struct pool_piece b = take(6 * MIB);
    ck_assert_uint_eq(fake.live, 1);
    pool_free(pool, &b);
    stop();
}
END_TEST

START_TEST(a_block_has_a_largest_size)
{
    struct err e = ERR_INIT;
    struct pool_piece piece = {0};
    start(1024 * MIB, 1024 * MIB);
    pool_destroy(pool);
    fake.source.max_block = 4 * MIB;
    ck_assert_int_eq(pool_create(&fake.source, 1024 * MIB, &pool, &e), 0);
    ck_assert_int_eq(pool_alloc(pool, 4 * MIB + 1, &piece, &e), ERR_DEVICE_MEMORY);
    ck_assert_uint_eq(stats().largest_free, 4 * MIB);
    /* a class above the largest block must not stand in the way */
    struct pool_piece a = take(4 * MIB - 100);
    pool_free(pool, &a);
    stop();
}
END_TEST

START_TEST(trims_the_oldest_first)
{
    start(64 * MIB, 64 * MIB);
    struct pool_piece a = take(2 * MIB);
    struct pool_piece b = take(4 * MIB);
    void *younger = b.block;
    pool_free(pool, &a);
    pool_free(pool, &b);
    ck_assert_uint_eq(pool_trim(pool, 5 * MIB), 2 * MIB);
    ck_assert_uint_eq(stats().cached, 4 * MIB);
    struct pool_piece c = take(4 * MIB);
    ck_assert_ptr_eq(c.block, younger);
    ck_assert_uint_eq(pool_trim(pool, 0), 0);
    pool_free(pool, &c);
    ck_assert_uint_eq(pool_trim(pool, 0), 4 * MIB);
    ck_assert_uint_eq(stats().size, 0);
    stop();
}
END_TEST

START_TEST(a_lower_limit_is_reached_as_pieces_go)
{
    struct err e = ERR_INIT;
    struct pool_piece piece = {0};
    start(64 * MIB, 64 * MIB);
    struct pool_piece a = take(8 * MIB);
    struct pool_piece b = take(8 * MIB);
    pool_free(pool, &b);
    pool_set_limit(pool, 4 * MIB);
    ck_assert_uint_eq(stats().size, 8 * MIB);
    ck_assert_int_eq(pool_alloc(pool, 256, &piece, &e), ERR_DEVICE_MEMORY);
    ck_assert_uint_eq(stats().largest_free, 0);
    pool_free(pool, &a);
    ck_assert_uint_eq(stats().size, 0);
    struct pool_piece c = take(4 * MIB);
    pool_free(pool, &c);
    stop();
}
END_TEST

/* Each call of the source fails in turn: the pool says so, or goes around it, and stays whole. */
START_TEST(survives_each_failure_of_its_source)
{
    for (unsigned n = 1; n <= 12; n++) {
        struct pool_piece piece[8] = {{0}};
        static const uint64_t sizes[8] = {100, 300 * 1000, 5000, 2 << 20, 256, 40000, 1, 9 << 20};
        start(32 * MIB, 32 * MIB);
        fake.fail_at = n;
        fake.fail_code = n % 3 == 0 ? ERR_DEVICE_LOST : ERR_DEVICE_MEMORY;
        unsigned live = 0;
        for (unsigned i = 0; i < 8; i++) {
            struct err e = ERR_INIT;
            int rc = pool_alloc(pool, sizes[i], &piece[i], &e);
            ck_assert(rc == 0 || rc == fake.fail_code);
            ck_assert_int_eq(piece[i].owner != NULL, rc == 0);
            live += rc == 0;
            check();
        }
        ck_assert_uint_eq(stats().live, live);
        for (unsigned i = 0; i < 8; i++) {
            pool_free(pool, &piece[i]);
            check();
        }
        stop();
    }
}
END_TEST

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static bool overlaps(const struct pool_piece *piece, unsigned count, unsigned fresh)
{
    const struct pool_piece *p = &piece[fresh];
    for (unsigned i = 0; i < count; i++) {
        const struct pool_piece *q = &piece[i];
        if (i != fresh && q->owner && q->block == p->block && p->offset < q->offset + q->size &&
            q->offset < p->offset + p->size) {
            return true;
        }
    }
    return false;
}

START_TEST(random_use_never_overlaps)
{
    enum { SLOTS = 200, STEPS = 20000 };
    static struct pool_piece piece[SLOTS];
    uint64_t state = 88172645463325252u;
    memset(piece, 0, sizeof piece);
    start(96 * MIB, 64 * MIB);
    for (unsigned step = 0; step < STEPS && fake.made < BLOCKS_MAX - 8; step++) {
        unsigned slot = (unsigned)(random_next(&state) % SLOTS);
        if (piece[slot].owner) {
            pool_free(pool, &piece[slot]);
            continue;
        }
        uint64_t size = 1 + random_next(&state) % (UINT64_C(1) << random_next(&state) % 21);
        if (pool_alloc(pool, size, &piece[slot], NULL) == 0) {
            ck_assert(!overlaps(piece, SLOTS, slot));
        }
        ck_assert_uint_le(stats().size, 64 * MIB);
        if (step % 512 == 0) {
            check();
            pool_trim(pool, MIB);
        }
    }
    ck_assert_uint_gt(stats().hits, stats().allocations / 2);
    for (unsigned i = 0; i < SLOTS; i++) {
        pool_free(pool, &piece[i]);
    }
    ck_assert_uint_eq(stats().live, 0);
    stop();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pool");
    TCase *t = tcase_create("pool");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, classes_waste_an_eighth_at_most);
    tcase_add_test(t, small_pieces_share_a_chunk);
    tcase_add_test(t, a_chunk_is_used_up_before_the_next);
    tcase_add_test(t, large_blocks_are_kept_and_reused);
    tcase_add_test(t, an_empty_chunk_serves_other_sizes);
    tcase_add_test(t, refusals_name_wanted_and_free);
    tcase_add_test(t, what_is_called_free_can_be_had);
    tcase_add_test(t, a_small_limit_serves_small_requests);
    tcase_add_test(t, a_full_device_takes_back_what_is_cached);
    tcase_add_test(t, a_block_has_a_largest_size);
    tcase_add_test(t, trims_the_oldest_first);
    tcase_add_test(t, a_lower_limit_is_reached_as_pieces_go);
    tcase_add_test(t, survives_each_failure_of_its_source);
    tcase_add_test(t, random_use_never_overlaps);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
