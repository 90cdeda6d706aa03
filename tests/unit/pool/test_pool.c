#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pool/pool_int.h"
#include "daemon/pool/quota.h"
#include "tests/unit/pool/fake_source.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)

static struct fake_source source;
static struct pool *pool;
static struct err err;

static void check(void)
{
    ck_assert_msg(pool_check(pool, &err) == 0, "%s", err.text);
}

static void start_with(bool pages, uint64_t limit, uint32_t max_blocks)
{
    struct pool_options o = {.limit = limit, .streams = 3, .max_blocks = max_blocks};
    (pages ? fake_pages_init : fake_blocks_init)(&source, UINT64_C(1) << 36);
    ck_assert_msg(pool_create(&source.source, &o, &pool, &err) == 0, "%s", err.text);
}

static void start(bool pages, uint64_t limit)
{
    start_with(pages, limit, 0);
}

static void stop(void)
{
    check();
    pool_destroy(pool);
    fake_finish(&source);
}

static int try_take(uint64_t size, unsigned stream, unsigned tenant, struct pool_piece *ret)
{
    struct pool_ask ask = {.size = size, .stream = stream, .tenant = tenant};
    err = ERR_INIT;
    int rc = pool_alloc(pool, &ask, ret, &err);
    check();
    return rc;
}

static struct pool_piece take(uint64_t size, unsigned stream)
{
    struct pool_piece piece = {.range = NULL};
    ck_assert_msg(try_take(size, stream, 0, &piece) == 0, "%s", err.text);
    ck_assert_uint_ge(piece.size, size);
    ck_assert_uint_eq(piece.offset % POOL_ALIGN, 0);
    ck_assert(fake_usable(&source, &piece));
    return piece;
}

static void give(struct pool_piece *piece, unsigned stream, uint64_t seq)
{
    struct err e = ERR_INIT;
    ck_assert_msg(pool_free(pool, piece, stream, seq, &e) == 0, "%s", e.text);
    check();
}

static struct pool_stats stats(void)
{
    struct pool_stats s;
    pool_stats(pool, &s);
    return s;
}

/* ---- requests ---------------------------------------------------------------------------------*/

START_TEST(what_is_no_request_is_refused)
{
    struct pool_piece piece;
    start(_i == 0, 64 * MIB);
    ck_assert_int_eq(try_take(0, 0, 0, &piece), ERR_INVALID);
    ck_assert_int_eq(try_take(1, 3, 0, &piece), ERR_INVALID);
    ck_assert_int_eq(try_take(1, 0, POOL_TENANTS, &piece), ERR_INVALID);
    ck_assert_int_eq(try_take(UINT64_MAX, 0, 0, &piece), ERR_DEVICE_MEMORY);
    ck_assert_int_eq(try_take(UINT64_MAX - 300, 0, 0, &piece), ERR_DEVICE_MEMORY);
    ck_assert_int_eq(try_take(UINT64_C(1) << 63, 0, 0, &piece), ERR_DEVICE_MEMORY);
    ck_assert_uint_eq(stats().failures, 6);
    stop();
}
END_TEST

START_TEST(each_size_around_a_border_is_served)
{
    static const uint64_t border[] = {256, 2048, 64 * KIB, 128 * KIB, 2 * MIB, 4 * MIB, 16 * MIB};
    start(_i == 0, 256 * MIB);
    for (size_t b = 0; b < sizeof border / sizeof border[0]; b++) {
        for (uint64_t size = border[b] - 1; size <= border[b] + 1; size++) {
            struct pool_piece piece = take(size, 0);
            ck_assert_uint_le(piece.size, size + size / 8 + POOL_ALIGN);
            give(&piece, 0, 0);
        }
    }
    ck_assert_uint_eq(stats().used, 0);
    ck_assert_uint_eq(stats().asked, 0);
    stop();
}
END_TEST

/* However often its memory was allocated again. */
START_TEST(a_stale_piece_is_never_live)
{
    start(true, 64 * MIB);
    struct pool_piece piece = take(100, 0);
    struct pool_piece stale = piece;
    give(&piece, 0, 0);
    for (unsigned uses = 1; uses <= 65536; uses++) {
        piece = take(100, 0);
        if (uses == 256 || uses == 65536) {
            struct pool_piece copy = stale;
            ck_assert_uint_eq(piece.offset, stale.offset);
            ck_assert_int_eq(pool_free(pool, &copy, 0, 0, &err), ERR_BAD_HANDLE);
        }
        give(&piece, 0, 0);
    }
    stop();
}
END_TEST

START_TEST(a_piece_is_freed_once)
{
    uint64_t size = _i == 0 ? 100 : _i == 1 ? 100 * KIB : 10 * MIB;
    start(true, 64 * MIB);
    struct pool_piece piece = take(size, 0);
    struct pool_piece copy = piece;
    give(&piece, 0, 0);
    give(&piece, 0, 0); /* a cleared piece is no piece */
    ck_assert_int_eq(pool_free(pool, &copy, 0, 0, &err), ERR_BAD_HANDLE);
    struct pool_piece other = take(size, 0); /* the same memory, another piece */
    if (size > POOL_SLAB_MAX) {
        ck_assert_int_eq(pool_free(pool, &copy, 0, 0, &err), ERR_BAD_HANDLE);
    }
    ck_assert_uint_eq(stats().live, 1);
    give(&other, 0, 0);
    stop();
}
END_TEST

/* ---- limits -----------------------------------------------------------------------------------*/

START_TEST(the_limit_holds_and_is_named)
{
    struct pool_piece a;
    struct pool_piece b;
    start(_i == 0, 8 * MIB);
    ck_assert_int_eq(try_take(9 * MIB, 0, 0, &a), ERR_DEVICE_MEMORY);
    ck_assert_ptr_nonnull(strstr(err.text, "9437184 bytes wanted"));
    ck_assert_ptr_nonnull(strstr(err.text, "largest free 8388608"));
    a = take(5 * MIB, 0);
    ck_assert_int_eq(try_take(5 * MIB, 0, 0, &b), ERR_DEVICE_MEMORY);
    ck_assert_uint_le(stats().size, 8 * MIB);
    give(&a, 0, 0);
    a = take(8 * MIB, 0); /* cached memory goes back */
    give(&a, 0, 0);
    stop();
}
END_TEST

START_TEST(largest_free_is_what_can_be_had)
{
    start(_i == 0, 64 * MIB);
    struct pool_piece a = take(20 * MIB, 0);
    struct pool_piece b = take(300 * KIB, 0);
    uint64_t most = stats().largest_free;
    struct pool_piece c = take(most, 0);
    give(&a, 0, 0);
    give(&b, 0, 0);
    give(&c, 0, 0);
    stop();
}
END_TEST

START_TEST(a_lower_limit_gives_memory_back)
{
    start(_i == 0, 64 * MIB);
    struct pool_piece a = take(16 * MIB, 0);
    struct pool_piece b = take(16 * MIB, 0);
    give(&a, 0, 0);
    ck_assert_uint_eq(stats().size, 32 * MIB);
    pool_set_limit(pool, 20 * MIB);
    check();
    ck_assert_uint_le(stats().size, 20 * MIB);
    pool_set_limit(pool, 4 * MIB);
    ck_assert_uint_eq(stats().size, 16 * MIB); /* b is in use */
    give(&b, 0, 0);
    ck_assert_uint_le(stats().size, 4 * MIB);
    stop();
}
END_TEST

START_TEST(a_tenant_has_its_own_limit)
{
    struct pool_piece a;
    struct pool_piece b;
    start(true, 64 * MIB);
    struct pool_quota quota = {.hard = 3 * MIB, .soft = UINT64_MAX};
    ck_assert_int_eq(pool_set_quota(pool, 7, &quota, &err), 0);
    ck_assert_int_eq(try_take(4 * MIB, 0, 7, &a), ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.text, "tenant 7"));
    ck_assert_int_eq(try_take(2 * MIB, 0, 7, &a), 0);
    ck_assert_int_eq(try_take(2 * MIB, 0, 7, &b), ERR_LIMIT);
    ck_assert_int_eq(try_take(UINT64_MAX, 0, 7, &b), ERR_LIMIT);
    ck_assert_int_eq(try_take(2 * MIB, 0, 8, &b), 0);
    ck_assert_uint_eq(pool_tenant_used(pool, 7), 2 * MIB);
    give(&a, 0, 0);
    give(&b, 0, 0);
    ck_assert_uint_eq(pool_tenant_used(pool, 7), 0);
    stop();
}
END_TEST

START_TEST(records_used_up_is_an_error)
{
    struct pool_piece piece[64];
    unsigned n = 0;
    start_with(true, 512 * MIB, 24);
    while (n < 64 && try_take(100 * KIB, 0, 0, &piece[n]) == 0) {
        n++;
    }
    ck_assert_uint_lt(n, 64);
    ck_assert_int_eq(err.code, ERR_NOMEM);
    while (n > 0) {
        give(&piece[--n], 0, 0);
    }
    piece[0] = take(100 * KIB, 0);
    give(&piece[0], 0, 0);
    stop();
}
END_TEST

/* ---- order of streams -------------------------------------------------------------------------*/

START_TEST(freed_memory_serves_its_stream_at_once_and_others_when_it_is_past)
{
    uint64_t size = _i == 0 ? 1000 : 3 * MIB;
    start(true, 256 * MIB);
    source.source.wait = NULL;
    pool_destroy(pool);
    struct pool_options o = {.limit = 256 * MIB, .streams = 3};
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, &err), 0);
    struct pool_piece a = take(size, 1);
    uint64_t where = a.offset;
    give(&a, 1, 10);
    struct pool_piece other = take(size, 2);
    ck_assert_uint_ne(other.offset, where);
    a = take(size, 1);
    ck_assert_uint_eq(a.offset, where);
    give(&a, 1, 11);
    give(&other, 2, 1);
    pool_advance(pool, 1, 10);
    check();
    other = take(size, 0);
    ck_assert_uint_ne(other.offset, where);
    give(&other, 0, 0);
    pool_advance(pool, 1, 11);
    pool_advance(pool, 2, 1);
    check();
    ck_assert_uint_eq(stats().pending, 0);
    stop();
}
END_TEST

/* Stream 1 may still use memory that stream 2 got and never used. */
START_TEST(freed_unused_it_is_still_the_earlier_streams)
{
    uint64_t size = _i == 0 ? 1000 : 3 * MIB;
    start(true, 256 * MIB);
    struct pool_piece a = take(size, 1);
    uint64_t where = a.offset;
    give(&a, 1, 10);
    a = take(size, 1);
    ck_assert_uint_eq(a.offset, where);
    give(&a, 0, 0);
    ck_assert(_i == 0 || stats().pending > 0); /* a slab counts as handed out */
    source.waited[2][1] = 0;
    a = take(size, 2);
    ck_assert(a.offset != where || source.waited[2][1] >= 10);
    give(&a, 0, 0);
    pool_advance(pool, 1, 10);
    check();
    stop();
}
END_TEST

START_TEST(a_piece_of_a_slab_is_not_its_successor)
{
    start(true, 64 * MIB);
    struct pool_piece a = take(500, 0);
    struct pool_piece copy = a;
    give(&a, 0, 0);
    struct pool_piece b = take(500, 0);
    ck_assert_uint_eq(b.offset, copy.offset);
    ck_assert_int_eq(pool_free(pool, &copy, 0, 0, &err), ERR_BAD_HANDLE);
    ck_assert_uint_eq(stats().live, 1);
    give(&b, 0, 0);
    stop();
}
END_TEST

START_TEST(another_stream_waits_before_memory_is_mapped)
{
    start(true, 256 * MIB);
    struct pool_piece a = take(3 * MIB, 1);
    uint64_t size = stats().size;
    give(&a, 1, 10);
    a = take(3 * MIB, 2);
    ck_assert_uint_eq(source.waited[2][1], 10);
    ck_assert_uint_eq(stats().waits, 1);
    ck_assert_uint_eq(stats().size, size);
    give(&a, 2, 1);
    stop();
}
END_TEST

static struct pool_piece take_promptly(uint64_t size, unsigned stream)
{
    const struct pool_ask ask = {.size = size, .stream = stream, .prompt = true};
    struct pool_piece piece = {.range = NULL};
    ck_assert_msg(pool_alloc(pool, &ask, &piece, &err) == 0, "%s", err.text);
    check();
    return piece;
}

/* New memory as long as there is any, and only then memory that another stream may still use. */
START_TEST(a_prompt_request_waits_last)
{
    start(_i == 0, 64 * MIB);
    struct pool_piece a = take(24 * MIB, 1);
    give(&a, 1, 10);
    a = take_promptly(16 * MIB, 2);
    ck_assert_uint_eq(stats().waits, 0);
    struct pool_piece b = take_promptly(24 * MIB, 2);
    ck_assert_uint_eq(stats().waits, 0);
    struct pool_piece c = take_promptly(16 * MIB, 2);
    ck_assert_uint_eq(stats().waits, 1);
    ck_assert_uint_eq(source.waited[2][1], 10);
    ck_assert_uint_eq(stats().size, 64 * MIB);
    give(&a, 2, 1);
    give(&b, 2, 1);
    give(&c, 2, 1);
    stop();
}
END_TEST

/* The same for slabs: a new one comes before one that another stream uses. */
START_TEST(a_prompt_small_request_waits_last)
{
    enum { ALL = 256 }; /* pieces that fill all memory */
    struct pool_piece old[2];
    struct pool_piece piece[ALL];
    unsigned n = 0;
    start(_i == 0, 8 * MIB);
    old[0] = take(32 * KIB, 1);
    old[1] = take(32 * KIB, 1); /* not freed yet */
    give(&old[0], 1, 10);
    piece[n++] = take_promptly(32 * KIB, 2);
    ck_assert_uint_eq(stats().waits, 0);
    while (n < ALL && stats().waits == 0) {
        piece[n++] = take_promptly(32 * KIB, 2);
    }
    ck_assert_uint_eq(stats().waits, 1);
    ck_assert_uint_eq(source.waited[2][1], 10);
    ck_assert_uint_eq(stats().size, 8 * MIB);
    while (n > 0) {
        give(&piece[--n], 2, 1);
    }
    give(&old[1], 1, 11);
    stop();
}
END_TEST

/* ---- pages ------------------------------------------------------------------------------------*/

START_TEST(a_tail_shares_its_page)
{
    start(true, 256 * MIB);
    struct pool_piece a = take(3 * MIB, 0);
    struct pool_piece b = take(700 * KIB, 0);
    struct pool_piece c = take(300 * KIB, 0);
    ck_assert_uint_eq(stats().size, 4 * MIB);
    give(&a, 0, 0);
    give(&b, 0, 0);
    give(&c, 0, 0);
    stop();
}
END_TEST

START_TEST(scattered_pages_serve_a_large_request)
{
    struct pool_piece piece[32];
    start(true, 64 * MIB);
    for (unsigned i = 0; i < 32; i++) {
        piece[i] = take(2 * MIB, 0);
    }
    for (unsigned i = 0; i < 32; i += 2) {
        give(&piece[i], 0, 0);
    }
    struct pool_piece large = take(32 * MIB, 0);
    ck_assert_uint_eq(stats().size, 64 * MIB);
    ck_assert_uint_gt(stats().remaps, 0);
    for (unsigned i = 1; i < 32; i += 2) {
        give(&piece[i], 0, 0);
    }
    give(&large, 0, 0);
    stop();
}
END_TEST

START_TEST(the_same_again_asks_nothing_of_the_driver)
{
    static const uint64_t size[] = {100, 5000, 70 * KIB, MIB, 3 * MIB, 17 * MIB};
    struct pool_piece piece[6];
    uint64_t calls = 0;
    start(_i == 0, 256 * MIB);
    for (unsigned round = 0; round < 100; round++) {
        for (unsigned i = 0; i < 6; i++) {
            piece[i] = take(size[i], 0);
        }
        for (unsigned i = 0; i < 6; i++) {
            give(&piece[i], 0, round + 1);
        }
        pool_advance(pool, 0, round + 1);
        if (round == 1) {
            calls = stats().driver_calls;
        }
    }
    ck_assert_uint_eq(stats().driver_calls, calls);
    stop();
}
END_TEST

/* The same with small objects: their slabs are kept. */
START_TEST(a_job_with_small_objects_comes_to_rest)
{
    struct pool_piece piece[8];
    struct pool_piece object[8][12];
    struct pool_options o = {.limit = 1024 * MIB, .streams = 1};
    uint64_t calls = 0;
    fake_pages_init(&source, 1024 * MIB);
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, &err), 0);
    for (unsigned round = 0; round < 12; round++) {
        calls = round < 6 ? stats().driver_calls : calls;
        for (unsigned step = 0; step < 96; step++) {
            unsigned i = step % 5;
            for (unsigned n = 0; step >= 5 && n < 12; n++) {
                give(&object[i][n], 0, 0);
            }
            if (step >= 5) {
                give(&piece[i], 0, 0);
            }
            piece[i] = take((40 + step * 37 % 144) * MIB + step * 3 * KIB, 0);
            for (unsigned n = 0; n < 12; n++) {
                object[i][n] = take(256 + (step + 1) * (n + 1) * 977 % (60 * KIB), 0);
            }
        }
        for (unsigned i = 0; i < 5; i++) {
            for (unsigned n = 0; n < 12; n++) {
                give(&object[i][n], 0, 0);
            }
            give(&piece[i], 0, 0);
        }
    }
    ck_assert_uint_eq(stats().driver_calls, calls);
    ck_assert_uint_gt(stats().remaps, 1000);
    (void)pool_trim(pool, 0);
    ck_assert_uint_eq(source.taken, 0);
    stop();
}
END_TEST

/* Pages that a stream may still use serve it at other addresses at once, and other streams after a
 * wait; they remain mapped where the stream uses them. */
START_TEST(scattered_pages_in_use_serve_their_stream)
{
    struct pool_piece piece[32];
    struct pool_options o = {.limit = 64 * MIB, .streams = 3};
    unsigned other = (unsigned)_i;
    fake_pages_init(&source, 64 * MIB);
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, &err), 0);
    for (unsigned i = 0; i < 32; i++) {
        piece[i] = take(2 * MIB, 0);
    }
    for (unsigned i = 0; i < 32; i += 2) {
        ck_assert_int_eq(pool_free(pool, &piece[i], 0, 10 + i, &err), 0);
    }
    struct pool_piece large = take(32 * MIB, other);
    ck_assert_uint_eq(source.waited[other][0], other == 0 ? 0 : 40);
    ck_assert_uint_eq(stats().remaps, 16);
    for (unsigned n = 0; n < 64 * MIB / FAKE_PAGE; n++) {
        ck_assert_uint_eq(source.mapped[n + 1], n % 2 == 0 ? 2 : 1);
    }
    ck_assert_int_eq(pool_free(pool, &large, other, 100, &err), 0);
    (void)pool_trim(pool, 0);
    ck_assert_uint_eq(source.taken, 64 * MIB);
    pool_advance(pool, 0, 40);
    pool_advance(pool, other, 100);
    (void)pool_trim(pool, 0);
    ck_assert_uint_eq(source.taken, 32 * MIB);
    for (unsigned i = 1; i < 32; i += 2) {
        give(&piece[i], 0, 0);
    }
    stop();
}
END_TEST

/* A job that repeats itself while its frees complete some frees later. */
START_TEST(what_is_not_over_comes_back_without_a_call)
{
    struct pool_piece piece[8] = {{.range = NULL}};
    struct pool_options o = {.limit = 256 * MIB, .streams = 1};
    uint64_t calls = 0;
    uint64_t point = 0;
    fake_pages_init(&source, 256 * MIB);
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, &err), 0);
    for (unsigned round = 0; round < 12; round++) {
        calls = stats().driver_calls;
        for (unsigned step = 0; step < 24; step++) {
            unsigned i = step % 3;
            ck_assert_int_eq(pool_free(pool, &piece[i], 0, ++point, &err), 0);
            piece[i] = take((16 + step * 7 % 64) * MIB + step * 70 * KIB, 0);
            pool_advance(pool, 0, point > 2 ? point - 2 : 0);
        }
        for (unsigned i = 0; i < 3; i++) {
            ck_assert_int_eq(pool_free(pool, &piece[i], 0, ++point, &err), 0);
        }
    }
    ck_assert_uint_eq(stats().driver_calls, calls);
    ck_assert_uint_gt(stats().remaps, 1000);
    pool_advance(pool, 0, point);
    stop();
}
END_TEST

/* A round needs more than there is memory, none of it cached where it is wanted: pages are mapped
 * at the addresses of the round before. */
START_TEST(a_job_that_repeats_itself_finds_its_pages_mapped)
{
    struct pool_piece piece[8];
    struct pool_options o = {.limit = 256 * MIB, .streams = 1};
    uint64_t calls = 0;
    fake_pages_init(&source, 256 * MIB);
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, &err), 0);
    for (unsigned round = 0; round < 12; round++) {
        calls = stats().driver_calls;
        for (unsigned step = 0; step < 24; step++) {
            unsigned i = step % 3;
            if (step >= 3) {
                give(&piece[i], 0, 0);
            }
            piece[i] = take((16 + step * 7 % 64) * MIB, 0);
        }
        for (unsigned i = 0; i < 3; i++) {
            give(&piece[i], 0, 0);
        }
    }
    ck_assert_uint_eq(stats().driver_calls, calls);
    ck_assert_uint_gt(stats().remaps, 1000);
    (void)pool_trim(pool, 0);
    check();
    ck_assert_uint_eq(source.taken, 0);
    stop();
}
END_TEST

/* A request's cost follows runs, not bytes. */
START_TEST(memory_of_one_piece_is_one_run)
{
    struct pool_piece piece[3];
    start(true, 256 * MIB);
    piece[0] = take(128 * MIB, 0);
    ck_assert_uint_eq(pool->table.runs.live, 1);
    piece[1] = take(64 * MIB, 0);
    piece[2] = take(64 * MIB, 0);
    give(&piece[0], 0, 0);
    give(&piece[2], 0, 0);
    piece[0] = take(192 * MIB, 0); /* of the pages of two pieces */
    ck_assert_uint_eq(pool->table.runs.live, 3);
    give(&piece[0], 0, 0);
    give(&piece[1], 0, 0);
    stop();
}
END_TEST

START_TEST(a_small_request_needs_no_slab)
{
    start(_i == 0, 4 * MIB);
    struct pool_piece a = take(4 * MIB - 40 * KIB, 0);
    ck_assert_uint_eq(stats().largest_free, 40 * KIB);
    struct pool_piece b = take(40 * KIB, 0);
    give(&a, 0, 0);
    give(&b, 0, 0);
    stop();
}
END_TEST

/* Free pages and addresses without pages alternate: no two neighbours are of one kind. */
START_TEST(addresses_in_pieces_serve_a_large_request)
{
    struct pool_piece piece[24];
    struct pool_options o = {.limit = 48 * MIB, .address_bytes = 50 * MIB, .streams = 3};
    fake_pages_init(&source, 48 * MIB);
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, &err), 0);
    for (unsigned i = 0; i < 24; i++) {
        piece[i] = take(2 * MIB, 0);
        ck_assert(i == 0 || piece[i].offset == piece[i - 1].offset + 2 * MIB);
    }
    for (unsigned i = 1; i < 12; i += 2) {
        give(&piece[i], 0, 0);
    }
    (void)pool_trim(pool, 0);
    for (unsigned i = 2; i < 12; i += 2) {
        give(&piece[i], 0, 0);
    }
    struct pool_piece large = take(22 * MIB, 0);
    give(&large, 0, 0);
    for (unsigned i = 0; i < 24; i++) {
        give(&piece[i], 0, 0); /* a cleared piece is no piece */
    }
    stop();
}
END_TEST

/* ---- tenants ----------------------------------------------------------------------------------*/

static bool foreign(uint64_t size, unsigned tenant)
{
    struct pool_piece piece;
    ck_assert_msg(try_take(size, 0, tenant, &piece) == 0, "%s", err.text);
    bool is = piece.foreign;
    piece.foreign = false; /* cleared */
    give(&piece, 0, 0);
    return is;
}

START_TEST(memory_of_another_tenant_is_told)
{
    static const uint64_t sizes[] = {1000, 100 * KIB, 5 * MIB};
    uint64_t size = sizes[_i % 3];
    start(_i < 3, 64 * MIB);
    ck_assert(!foreign(size, 1)); /* new memory was cleared */
    ck_assert(!foreign(size, 1));
    ck_assert(foreign(size, 2));
    ck_assert(foreign(size, 1));
    ck_assert_uint_eq(source.cleared, stats().size);
    stop();
}
END_TEST

START_TEST(without_clearing_new_memory_is_foreign)
{
    start(true, 64 * MIB);
    source.source.clear = NULL;
    pool_destroy(pool);
    struct pool_options o = {.limit = 64 * MIB, .streams = 3};
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, &err), 0);
    ck_assert(foreign(4 * MIB, 1));
    ck_assert(!foreign(4 * MIB, 1)); /* the tenant has cleared it */
    ck_assert(!foreign(1000, 1));
    ck_assert(foreign(1000, 2));
    ck_assert(!foreign(1000, 2));
    stop();
}
END_TEST

START_TEST(a_page_of_two_tenants_is_foreign_to_both_until_one_has_all_of_it)
{
    struct pool_piece a;
    struct pool_piece b;
    start(true, 64 * MIB);
    ck_assert_int_eq(try_take(MIB, 0, 1, &a), 0);
    ck_assert(!a.foreign);
    ck_assert_int_eq(try_take(MIB, 0, 2, &b), 0);
    ck_assert(b.foreign);
    give(&a, 0, 0);
    give(&b, 0, 0);
    ck_assert(foreign(MIB, 1));
    ck_assert(foreign(2 * MIB, 1));
    ck_assert(!foreign(2 * MIB, 1));
    ck_assert(!foreign(MIB, 1));
    stop();
}
END_TEST

START_TEST(a_page_takes_its_tenant_along)
{
    struct pool_piece piece[8];
    start(true, 16 * MIB);
    for (unsigned i = 0; i < 8; i++) {
        ck_assert_int_eq(try_take(2 * MIB, 0, 1, &piece[i]), 0);
    }
    for (unsigned i = 0; i < 8; i += 2) {
        give(&piece[i], 0, 0);
    }
    struct pool_piece large;
    ck_assert_int_eq(try_take(8 * MIB, 0, 1, &large), 0);
    ck_assert_uint_gt(stats().remaps, 0);
    ck_assert(!large.foreign);
    give(&large, 0, 0);
    ck_assert(foreign(8 * MIB, 2));
    for (unsigned i = 1; i < 8; i += 2) {
        give(&piece[i], 0, 0);
    }
    stop();
}
END_TEST

/* ---- faults -----------------------------------------------------------------------------------*/

/* Requests of every kind; failures are ignored. */
static void scenario(void)
{
    struct pool_piece piece[24];
    unsigned n = 0;
    for (unsigned i = 0; i < 24; i++) {
        uint64_t size = i % 3 == 0 ? 10 * KIB : i % 3 == 1 ? 900 * KIB : 3 * MIB;
        n += try_take(size, i % 3, 0, &piece[n]) == 0;
    }
    for (unsigned i = 0; i < n; i += 2) {
        give(&piece[i], i % 3, i + 1);
    }
    pool_advance(pool, 0, 12);
    struct pool_piece large = {.range = NULL};
    (void)try_take(20 * MIB, 1, 0, &large);
    give(&large, 1, 40);
    for (unsigned i = 1; i < n; i += 2) {
        give(&piece[i], 0, 0);
    }
    for (unsigned s = 0; s < 3; s++) {
        pool_advance(pool, s, 100);
    }
    check();
    (void)pool_trim(pool, 0);
    check();
}

START_TEST(any_call_of_the_source_may_fail_once)
{
    start(_i % 2 == 0, 40 * MIB);
    scenario();
    uint64_t calls = source.calls;
    stop();
    ck_assert_uint_gt(calls, 10);
    for (uint64_t n = 2; n <= calls; n++) { /* call 1 reserves the range */
        start(_i % 2 == 0, 40 * MIB);
        source.fail_at = n;
        source.fail_code = _i < 2 ? ERR_DEVICE_MEMORY : ERR_DEVICE_LOST;
        scenario();
        source.fail_at = 0;
        struct pool_piece piece = take(MIB, 0);
        give(&piece, 0, 0);
        stop();
    }
}
END_TEST

START_TEST(two_calls_in_a_row_may_fail)
{
    start(_i % 2 == 0, 40 * MIB);
    scenario();
    uint64_t calls = source.calls;
    stop();
    for (uint64_t n = 2; n <= calls; n++) {
        for (uint64_t again = 1; again <= 3; again++) {
            start(_i % 2 == 0, 40 * MIB);
            source.fail_at = n;
            source.fail_again = n + again;
            scenario();
            source.fail_at = source.fail_again = 0;
            struct pool_piece piece = take(MIB, 0);
            give(&piece, 0, 0);
            stop();
        }
    }
}
END_TEST

START_TEST(no_pool_without_a_range)
{
    struct pool_options o = {.limit = 64 * MIB, .streams = 1};
    fake_pages_init(&source, 64 * MIB);
    source.space_most = 1;
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, &err), ERR_NOMEM);
    o.streams = 0;
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, &err), ERR_INVALID);
    o.streams = 1;
    source.source.blocks = &source.blocks;
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, &err), ERR_INVALID);
    fake_finish(&source);
}
END_TEST

START_TEST(the_check_sees_damage)
{
    start(true, 64 * MIB);
    struct pool_piece a = take(3 * MIB, 0);
    struct block *b = block_at(&pool->blocks, a.block);
    b->size += 256;
    ck_assert_int_eq(pool_check(pool, &err), ERR_INTERNAL);
    b->size -= 256;
    pool->stats.used += 1;
    ck_assert_int_eq(pool_check(pool, &err), ERR_INTERNAL);
    pool->stats.used -= 1;
    struct run *run = records_at(&pool->table.runs, pool->table.view[a.offset / pool->page].run);
    uint32_t used = run->used;
    run->used = 0;
    ck_assert_int_eq(pool_check(pool, &err), ERR_INTERNAL);
    run->used = used;
    give(&a, 0, 0);
    pool->whole_bytes += pool->page;
    ck_assert_int_eq(pool_check(pool, &err), ERR_INTERNAL);
    pool->whole_bytes -= pool->page;
    stop();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pool");
    TCase *t = tcase_create("pool");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, what_is_no_request_is_refused, 0, 2);
    tcase_add_loop_test(t, each_size_around_a_border_is_served, 0, 2);
    tcase_add_loop_test(t, a_piece_is_freed_once, 0, 3);
    tcase_add_loop_test(t, the_limit_holds_and_is_named, 0, 2);
    tcase_add_loop_test(t, largest_free_is_what_can_be_had, 0, 2);
    tcase_add_loop_test(t, a_lower_limit_gives_memory_back, 0, 2);
    tcase_add_test(t, a_stale_piece_is_never_live);
    tcase_add_test(t, a_tenant_has_its_own_limit);
    tcase_add_test(t, records_used_up_is_an_error);
    tcase_add_loop_test(t, freed_memory_serves_its_stream_at_once_and_others_when_it_is_past, 0, 2);
    tcase_add_loop_test(t, freed_unused_it_is_still_the_earlier_streams, 0, 2);
    tcase_add_test(t, a_piece_of_a_slab_is_not_its_successor);
    tcase_add_test(t, another_stream_waits_before_memory_is_mapped);
    tcase_add_loop_test(t, a_prompt_request_waits_last, 0, 2);
    tcase_add_loop_test(t, a_prompt_small_request_waits_last, 0, 2);
    tcase_add_test(t, a_tail_shares_its_page);
    tcase_add_test(t, scattered_pages_serve_a_large_request);
    tcase_add_loop_test(t, the_same_again_asks_nothing_of_the_driver, 0, 2);
    tcase_add_test(t, a_job_that_repeats_itself_finds_its_pages_mapped);
    tcase_add_loop_test(t, scattered_pages_in_use_serve_their_stream, 0, 2);
    tcase_add_test(t, what_is_not_over_comes_back_without_a_call);
    tcase_add_test(t, a_job_with_small_objects_comes_to_rest);
    tcase_add_test(t, memory_of_one_piece_is_one_run);
    tcase_add_loop_test(t, a_small_request_needs_no_slab, 0, 2);
    tcase_add_test(t, addresses_in_pieces_serve_a_large_request);
    tcase_add_loop_test(t, memory_of_another_tenant_is_told, 0, 6);
    tcase_add_test(t, without_clearing_new_memory_is_foreign);
    tcase_add_test(t, a_page_of_two_tenants_is_foreign_to_both_until_one_has_all_of_it);
    tcase_add_test(t, a_page_takes_its_tenant_along);
    tcase_add_loop_test(t, any_call_of_the_source_may_fail_once, 0, 4);
    tcase_add_loop_test(t, two_calls_in_a_row_may_fail, 0, 2);
    tcase_add_test(t, no_pool_without_a_range);
    tcase_add_test(t, the_check_sees_damage);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
