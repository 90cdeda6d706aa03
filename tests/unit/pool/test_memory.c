/*
 * The bytes in memory: no tenant sees another's bytes, moved pieces keep their bytes, and host
 * memory as a source.
 */
#include <check.h>
#include <string.h>

#include "daemon/pool/clean.h"
#include "daemon/pool/host.h"
#include "daemon/pool/move.h"
#include "tests/unit/pool/real_source.h"

#define KIB     UINT64_C(1024)
#define MIB     (KIB * KIB)
#define TENANTS 4u
#define LIVE    200u

#ifdef __SANITIZE_THREAD__
#define SWITCHES 500u /* in one thread, and twenty times slower */
#else
#define SWITCHES 10000u
#endif

struct held {
    struct pool_piece piece;
    uint8_t mark; /* each byte of it, or 0 */
};

static struct real_source source;
static struct pool_host host;
static struct pool *pool;
static struct err err;
static struct held held[LIVE];
static uint32_t order[LIVE]; /* slots; the first `count` are alive */
static unsigned count;
static uint64_t random_state;

static uint64_t rnd(uint64_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % below;
}

static int move(void *user, struct pool_move *m, struct err *e)
{
    struct held *h = &held[m->tag - 1];
    (void)user;
    (void)e;
    if (rnd(16) == 0) {
        return ERR_BUSY;
    }
    ck_assert(real_at(&h->piece) == real_at(m->from));
    ck_assert_uint_eq(h->piece.size, m->to->size);
    memcpy(real_at(m->to), real_at(m->from), m->to->size);
    pool_piece_moved(&h->piece, m);
    return 0;
}

static void start(const struct pool_source *s, uint64_t limit)
{
    const struct pool_options o = {.limit = limit, .address_bytes = 8 * limit, .streams = 2};
    const struct pool_mover mover = {.move = move};
    ck_assert_msg(pool_create(s, &o, &pool, &err) == 0, "%s", err.text);
    pool_set_mover(pool, &mover);
    random_state = 88172645463325252;
    count = 0;
    for (uint32_t i = 0; i < LIVE; i++) {
        order[i] = i;
    }
}

static void check(void)
{
    ck_assert_msg(pool_check(pool, &err) == 0, "%s", err.text);
}

static bool all_are(const uint8_t *at, uint64_t bytes, uint8_t a, uint8_t b)
{
    unsigned odd = 0;
    for (uint64_t i = 0; i < bytes; i++) {
        odd |= (unsigned)(at[i] != a) & (unsigned)(at[i] != b);
    }
    return odd == 0;
}

static void free_slot(unsigned k)
{
    uint32_t slot = order[k];
    struct held *h = &held[slot];
    if (!h->piece.foreign) {
        ck_assert_msg(all_are(real_at(&h->piece), h->piece.size, h->mark, h->mark),
                      "a piece has not what was written into it");
    }
    ck_assert_msg(pool_free(pool, &h->piece, 0, 0, &err) == 0, "%s", err.text);
    order[k] = order[--count];
    order[count] = slot;
}

/* As a worker: clears foreign pieces. Fails if another tenant's bytes come without `foreign`. */
static void take(unsigned tenant, uint64_t size, bool cancelled)
{
    uint32_t slot = order[count];
    struct held *h = &held[slot];
    const struct pool_ask ask = {
        .size = size, .tenant = tenant, .tag = rnd(8) == 0 ? 0 : slot + UINT64_C(1)};
    if (pool_alloc(pool, &ask, &h->piece, NULL) != 0) {
        free_slot((unsigned)rnd(count));
        return;
    }
    count++;
    h->mark = (uint8_t)(1 + tenant);
    if (h->piece.foreign && cancelled) {
        return; /* freed without being cleared */
    }
    if (h->piece.foreign) {
        memset(real_at(&h->piece), 0, h->piece.size);
        h->piece.foreign = false;
    }
    ck_assert_msg(all_are(real_at(&h->piece), h->piece.size, 0, h->mark),
                  "tenant %u sees bytes of another", tenant);
    memset(real_at(&h->piece), h->mark, h->piece.size);
}

static void clear_ahead(void)
{
    struct pool_piece piece;
    if (pool_unclean(pool, 256 * KIB, &piece)) {
        bool done = rnd(4) != 0;
        if (done) {
            memset(real_at(&piece), 0, piece.size);
        }
        pool_cleared(pool, &piece, done, 0, 0);
        ck_assert(piece.range == NULL);
    }
}

static uint64_t some_size(void)
{
    return rnd(3) == 0 ? (1 + rnd(3)) * 300 * KIB : 1 + rnd(UINT64_C(256) << rnd(14));
}

START_TEST(nobody_sees_bytes_of_another)
{
    unsigned tenant = 0;
    real_init(&source);
    start(&source.source, 12 * MIB);
    random_state += (uint64_t)_i * 7919;
    for (unsigned i = 0; i < SWITCHES; i++) {
        tenant = (tenant + 1 + (unsigned)rnd(TENANTS - 1)) % TENANTS;
        if (count == LIVE || (count > 0 && rnd(3) == 0)) {
            free_slot((unsigned)rnd(count));
        }
        take(tenant, some_size(), rnd(10) == 0);
        if (rnd(8) == 0) {
            clear_ahead();
        }
        if (rnd(64) == 0) {
            (void)pool_defragment(pool, MIB, NULL);
            (void)pool_trim(pool, rnd(12) * MIB);
            check();
        }
    }
    struct pool_stats s;
    pool_stats(pool, &s);
    ck_assert_uint_gt(s.moves, 100);
    ck_assert_uint_gt(s.cleared, MIB);
    ck_assert_uint_gt(s.remaps, 10);
    while (count > 0) {
        free_slot(count - 1);
    }
    check();
    pool_destroy(pool);
    real_finish(&source);
}
END_TEST

START_TEST(what_is_cleared_ahead_is_nobodys)
{
    struct pool_piece piece;
    struct pool_piece again;
    real_init(&source);
    start(&source.source, 4 * MIB);
    ck_assert(!pool_unclean(pool, MIB, &piece)); /* there is no memory yet */
    take(1, 2 * MIB, false);
    free_slot(0);
    uint64_t bytes = 0;
    while (pool_unclean(pool, 512 * KIB, &piece)) {
        ck_assert_uint_le(piece.size, 512 * KIB);
        memset(real_at(&piece), 0, piece.size);
        again = piece;
        pool_cleared(pool, &piece, true, 1, 7);
        pool_cleared(pool, &again, true, 1, 8); /* once is enough */
        bytes += again.size;
        check();
        pool_advance(pool, 1, 7);
    }
    ck_assert_uint_eq(bytes, 2 * MIB);
    const struct pool_ask ask = {.size = 2 * MIB, .tenant = 2};
    ck_assert_int_eq(pool_alloc(pool, &ask, &piece, &err), 0);
    ck_assert(!piece.foreign);
    ck_assert_int_eq(pool_free(pool, &piece, 0, 0, &err), 0);
    pool_destroy(pool);
    real_finish(&source);
}
END_TEST

START_TEST(a_piece_that_was_not_cleared_stays_foreign)
{
    uint64_t size = _i == 0 ? 1000 : 2 * MIB;
    struct pool_piece piece;
    const struct pool_ask first = {.size = size, .tenant = 1};
    const struct pool_ask second = {.size = size, .tenant = 2};
    real_init(&source);
    start(&source.source, 4 * MIB);
    ck_assert_int_eq(pool_alloc(pool, &first, &piece, &err), 0);
    piece.foreign = false;
    ck_assert_int_eq(pool_free(pool, &piece, 0, 0, &err), 0);
    for (unsigned i = 0; i < 3; i++) { /* freed without being cleared */
        ck_assert_int_eq(pool_alloc(pool, &second, &piece, &err), 0);
        ck_assert(piece.foreign);
        ck_assert_int_eq(pool_free(pool, &piece, 0, 0, &err), 0);
    }
    pool_destroy(pool);
    real_finish(&source);
}
END_TEST

/* ---- moving -----------------------------------------------------------------------------------*/

static int move_never(void *user, struct pool_move *m, struct err *e)
{
    (void)user;
    (void)m;
    return err_set(e, ERR_BUSY, "it is in use");
}

/* Half of each page is free. */
static void half_full(void)
{
    for (unsigned i = 0; i < 64; i++) {
        take(1, 32 * KIB, false);
    }
    for (unsigned i = 0; i < 32; i++) {
        for (unsigned k = 0; k < count; k++) {
            if (order[k] == 2 * i) {
                free_slot(k);
            }
        }
    }
}

START_TEST(free_halves_become_whole_pages)
{
    struct pool_stats s;
    real_init(&source);
    start(&source.source, 2 * MIB);
    half_full();
    pool_stats(pool, &s);
    uint64_t cached = s.cached;
    uint64_t moved;
    const struct pool_mover never = {.move = move_never};
    pool_set_mover(pool, &never);
    ck_assert(!pool_defragment(pool, 2 * MIB, &moved));
    ck_assert_uint_eq(moved, 0);
    check();
    pool_set_mover(pool, NULL);
    ck_assert(!pool_defragment(pool, 2 * MIB, &moved));
    ck_assert_uint_eq(moved, 0);
    const struct pool_mover mover = {.move = move};
    pool_set_mover(pool, &mover);
    while (pool_defragment(pool, 256 * KIB, &moved)) {
        ck_assert_uint_le(moved, 256 * KIB);
        check();
    }
    pool_stats(pool, &s);
    ck_assert_uint_gt(s.cached, cached + 512 * KIB);
    while (count > 0) {
        free_slot(count - 1);
    }
    pool_destroy(pool);
    real_finish(&source);
}
END_TEST

/* All memory is cut into objects of one size; half of them are free. */
START_TEST(free_objects_make_room_for_other_sizes)
{
    struct pool_piece piece[8] = {{.range = NULL}};
    const struct pool_ask ask = {.size = 60 * KIB, .tenant = 1};
    real_init(&source);
    start(&source.source, 2 * MIB);
    half_full();
    for (unsigned i = 0; i < 8; i++) {
        ck_assert_msg(pool_alloc(pool, &ask, &piece[i], &err) == 0, "%s", err.text);
        check();
    }
    for (unsigned i = 0; i < 8; i++) {
        ck_assert_int_eq(pool_free(pool, &piece[i], 0, 0, &err), 0);
    }
    while (count > 0) { /* all bytes arrive */
        free_slot(count - 1);
    }
    pool_destroy(pool);
    real_finish(&source);
}
END_TEST

/* ---- host memory ------------------------------------------------------------------------------*/

static unsigned pinned;
static unsigned pins_left;

static int pin(void *user, void *memory, uint64_t bytes, struct err *e)
{
    (void)user;
    ck_assert(all_are(memory, bytes, 0, 0));
    if (pins_left == 0) {
        return err_set(e, ERR_DEVICE_MEMORY, "nothing more can be pinned");
    }
    pins_left--;
    pinned++;
    return 0;
}

static void unpin(void *user, void *memory, uint64_t bytes)
{
    (void)user;
    (void)memory;
    (void)bytes;
    pinned--;
}

START_TEST(host_memory_comes_in_chunks)
{
    const struct pool_host_options o = {.chunk = MIB, .pin = pin, .unpin = unpin};
    struct pool_piece piece[8];
    pins_left = 4;
    ck_assert_int_eq(pool_host_init(&host, &o, &err), 0);
    start(&host.source, 64 * MIB);
    ck_assert_int_eq(pool_warm(pool, 2 * MIB, &err), 0);
    ck_assert_uint_eq(pinned, 2);
    for (unsigned i = 0; i < 8; i++) {
        const struct pool_ask ask = {.size = 512 * KIB, .tenant = i % 2};
        int rc = pool_alloc(pool, &ask, &piece[i], &err);
        ck_assert_msg(rc == 0, "%s", err.text);
        memset(pool_host_at(&piece[i]), 1 + (int)i, piece[i].size);
    }
    ck_assert_uint_eq(pinned, 4);
    ck_assert_uint_eq(host.bytes, 4 * MIB);
    struct pool_piece more;
    const struct pool_ask ask = {.size = 100};
    ck_assert_int_eq(pool_alloc(pool, &ask, &more, &err), ERR_DEVICE_MEMORY);
    ck_assert_ptr_nonnull(strstr(err.text, "nothing more can be pinned"));
    for (unsigned i = 0; i < 8; i++) {
        const uint8_t mark = (uint8_t)(1 + i);
        ck_assert(all_are(pool_host_at(&piece[i]), piece[i].size, mark, mark));
        ck_assert_int_eq(pool_free(pool, &piece[i], 0, 0, &err), 0);
    }
    (void)pool_trim(pool, 0);
    ck_assert_uint_eq(pinned, 0);
    pool_destroy(pool);
    ck_assert_uint_eq(host.bytes, 0);
}
END_TEST

START_TEST(odd_chunks_are_refused)
{
    struct pool_host_options o = {.chunk = MIB + 1};
    ck_assert_int_eq(pool_host_init(&host, &o, &err), ERR_INVALID);
    o.chunk = 4096;
    ck_assert_int_eq(pool_host_init(&host, &o, &err), ERR_INVALID);
    o.chunk = MIB;
    o.pin = pin;
    ck_assert_int_eq(pool_host_init(&host, &o, &err), ERR_INVALID);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("what the pool's memory holds");
    TCase *t = tcase_create("memory");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, nobody_sees_bytes_of_another, 0, 6);
    tcase_add_test(t, what_is_cleared_ahead_is_nobodys);
    tcase_add_loop_test(t, a_piece_that_was_not_cleared_stays_foreign, 0, 2);
    tcase_add_test(t, free_halves_become_whole_pages);
    tcase_add_test(t, free_objects_make_room_for_other_sizes);
    tcase_add_test(t, host_memory_comes_in_chunks);
    tcase_add_test(t, odd_chunks_are_refused);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
