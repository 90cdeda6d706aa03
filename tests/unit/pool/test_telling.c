/* What the pool reports: meters, the log, snapshots. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pool/clean.h"
#include "daemon/pool/move.h"
#include "daemon/pool/quota.h"
#include "tests/unit/pool/fake_source.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)

static struct fake_source source;
static struct pool *pool;

static void start(bool pages, uint32_t events)
{
    struct pool_options o = {.limit = 256 * MIB, .streams = 2, .events = events};
    (pages ? fake_pages_init : fake_blocks_init)(&source, UINT64_C(1) << 36);
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, NULL), 0);
}

static void stop(void)
{
    struct err e = ERR_INIT;
    ck_assert_msg(pool_check(pool, &e) == 0, "%s", e.text);
    pool_destroy(pool);
    fake_finish(&source);
}

static struct pool_piece take(uint64_t size, unsigned tenant)
{
    struct err e = ERR_INIT;
    struct pool_ask ask = {.size = size, .tenant = tenant};
    struct pool_piece piece;
    ck_assert_msg(pool_alloc(pool, &ask, &piece, &e) == 0, "%s", e.text);
    return piece;
}

static void give(struct pool_piece *piece, uint64_t seq)
{
    ck_assert_int_eq(pool_free(pool, piece, 0, seq, NULL), 0);
}

static struct pool_stats stats(void)
{
    struct pool_stats s;
    pool_stats(pool, &s);
    return s;
}

/* ---- meters -----------------------------------------------------------------------------------*/

START_TEST(each_tier_class_and_tenant_is_counted)
{
    struct pool_meter m;
    uint64_t bytes;
    start(_i == 0, 0);
    struct pool_piece small = take(1000, 3);
    struct pool_piece middle = take(100 * KIB + 1, 3);
    struct pool_piece large = take(3 * MIB, 4);
    struct pool_stats s = stats();
    ck_assert_uint_eq(s.tier[POOL_TIER_SLAB].used, 1024);
    ck_assert_uint_eq(s.tier[POOL_TIER_SLAB].asked, 1000);
    ck_assert_uint_eq(s.tier[POOL_TIER_BLOCK].used, 100 * KIB + 256);
    ck_assert_uint_eq(s.tier[POOL_TIER_LARGE].used, 3 * MIB);
    ck_assert_uint_eq(s.internal, 24 + 255);
    pool_class_stats(pool, 3, &bytes, &m);
    ck_assert_uint_eq(bytes, 1024);
    ck_assert_uint_eq(m.live, 1);
    pool_tenant_stats(pool, 3, &m);
    ck_assert_uint_eq(m.live, 2);
    ck_assert_uint_eq(m.used, 1024 + 100 * KIB + 256);
    give(&small, 0);
    give(&middle, 0);
    give(&large, 0);
    pool_tenant_stats(pool, 3, &m);
    ck_assert_uint_eq(m.live, 0);
    ck_assert_uint_eq(m.used, 0);
    ck_assert_uint_eq(m.peak, 1024 + 100 * KIB + 256);
    ck_assert_uint_eq(m.total, m.peak);
    ck_assert_uint_eq(m.allocations, 2);
    ck_assert_uint_eq(stats().tier[POOL_TIER_LARGE].peak, 3 * MIB);
    ck_assert_uint_eq(stats().internal, 0);
    pool_class_stats(pool, POOL_CLASSES, &bytes, &m);
    ck_assert_uint_eq(bytes + m.total, 0);
    pool_tenant_stats(pool, POOL_TENANTS, &m);
    ck_assert_uint_eq(m.total, 0);
    stop();
}
END_TEST

START_TEST(parts_of_pages_are_told)
{
    start(true, 0);
    struct pool_piece a = take(5 * MIB, 0);
    ck_assert_uint_eq(stats().size, 6 * MIB);
    ck_assert_uint_eq(stats().external, MIB);
    give(&a, 0);
    ck_assert_uint_eq(stats().external, 0);
    ck_assert_uint_eq(stats().cached, 6 * MIB);
    stop();
}
END_TEST

/* ---- the log ----------------------------------------------------------------------------------*/

static unsigned kinds(const struct pool_event *event, uint32_t count)
{
    unsigned seen = 0;
    for (uint32_t i = 0; i < count; i++) {
        ck_assert_uint_lt(event[i].kind, POOL_EVENT_KINDS);
        seen |= 1u << event[i].kind;
    }
    return seen;
}

/* The log played from its beginning: which piece lives at which address. */
struct played {
    uint64_t at, size; /* size 0: no piece */
};

static void play(const struct pool_event *v, struct played *live, unsigned *count)
{
    bool made = v->kind == POOL_EVENT_ALLOC || v->kind == POOL_EVENT_HIT;
    unsigned i = 0;
    while (i < *count && live[i].at != v->at) {
        i++;
    }
    if (made) {
        ck_assert_uint_eq(i, *count);
        live[(*count)++] = (struct played){v->at, v->size};
    } else if (v->kind == POOL_EVENT_FREE || v->kind == POOL_EVENT_MOVE) {
        ck_assert_uint_lt(i, *count);
        ck_assert_uint_eq(live[i].size, v->size);
        live[i] = live[--*count];
    }
}

/* The log played to its end equals the snapshot. */
static void check_log(void)
{
    static struct pool_event event[1024];
    static struct played live[1024];
    unsigned count = 0;
    uint64_t first;
    uint64_t bytes = pool_snapshot_bytes(pool);
    void *snapshot = malloc(bytes);
    ck_assert_ptr_nonnull(snapshot);
    ck_assert_int_eq(pool_snapshot(pool, snapshot, bytes, NULL), 0);
    uint32_t events = pool_events(pool, 0, event, 1024, &first);
    ck_assert_uint_eq(first, 0);
    for (uint32_t i = 0; i < events; i++) {
        play(&event[i], live, &count);
    }
    struct pool_cursor cursor = {0};
    for (struct pool_extent x; pool_snapshot_next(snapshot, &cursor, &x);) {
        unsigned i = 0;
        while (i < count && live[i].at != x.at) {
            i++;
        }
        ck_assert(x.state != POOL_EXTENT_LIVE || (i < count && live[i].size == x.size));
        count -= x.state == POOL_EXTENT_LIVE;
        live[i] = x.state == POOL_EXTENT_LIVE ? live[count] : live[i];
    }
    ck_assert_uint_eq(count, 0);
    free(snapshot);
}

static struct pool_piece movable[64];

static int move(void *user, struct pool_move *m, struct err *e)
{
    (void)user;
    (void)e;
    pool_piece_moved(&movable[m->tag - 1], m);
    return 0;
}

/* Every other half of a page is free: the pieces can move together. */
static void move_one(void)
{
    const struct pool_mover mover = {.move = move};
    pool_set_mover(pool, &mover);
    for (unsigned i = 0; i < 8; i++) {
        const struct pool_ask ask = {.size = MIB, .tag = i + 1};
        ck_assert_int_eq(pool_alloc(pool, &ask, &movable[i], NULL), 0);
    }
    for (unsigned i = 0; i < 8; i += 2) {
        give(&movable[i], 0);
    }
    uint64_t moved;
    (void)pool_defragment(pool, 16 * MIB, &moved);
    ck_assert_uint_gt(moved, 0);
    check_log();
    for (unsigned i = 1; i < 8; i += 2) {
        give(&movable[i], 0);
    }
}

/* Objects of two tenants: one tenant is at its hard limit, and the objects prevent whole pages. */
static void move_objects(void)
{
    const struct pool_quota hard = {.hard = 3 * MIB, .soft = UINT64_MAX};
    struct pool_piece piece;
    ck_assert_int_eq(pool_set_quota(pool, 1, &hard, NULL), 0);
    for (unsigned i = 0; i < 64; i++) {
        const struct pool_ask ask = {.size = 32 * KIB, .tenant = 1 + (i % 24 == 1), .tag = i + 1};
        ck_assert_int_eq(pool_alloc(pool, &ask, &movable[i], NULL), 0);
    }
    for (unsigned i = 0; i < 64; i++) {
        if (i % 8 != 1) {
            give(&movable[i], 0);
        }
    }
    uint64_t moves = stats().moves;
    piece = take(2 * MIB, 1);
    ck_assert_uint_gt(stats().moves, moves);
    check_log();
    give(&piece, 0);
    (void)pool_defragment(pool, 16 * MIB, NULL);
    check_log();
    for (unsigned i = 1; i < 64; i += 8) {
        give(&movable[i], 0);
    }
    ck_assert_int_eq(pool_set_quota(pool, 1, &POOL_QUOTA_NONE, NULL), 0);
}

static void some_of_everything(void)
{
    struct pool_piece piece[16];
    for (unsigned i = 0; i < 16; i++) {
        piece[i] = take(16 * MIB, 0);
    }
    for (unsigned i = 0; i < 16; i += 2) {
        give(&piece[i], 0);
    }
    piece[0] = take(100 * MIB, 0); /* pages move */
    for (unsigned i = 0; i < 16; i++) {
        give(&piece[i], i + 1);
    }
    struct pool_piece other;
    struct pool_ask ask = {.size = 300 * MIB, .stream = 1};
    ck_assert_int_ne(pool_alloc(pool, &ask, &other, NULL), 0);
    ask.size = 90 * MIB;
    ck_assert_int_eq(pool_alloc(pool, &ask, &other, NULL), 0); /* waits for stream 0 */
    pool_advance(pool, 0, 20);
    give(&other, 0);
    piece[0] = take(100, 0);
    piece[1] = take(100, 0);
    give(&piece[0], 0);
    give(&piece[1], 0);
    struct pool_piece unclean;
    ck_assert(pool_unclean(pool, MIB, &unclean));
    pool_cleared(pool, &unclean, true, 0, 0);
    move_one();
    move_objects();
    (void)pool_trim(pool, 0);
    pool_set_limit(pool, 64 * MIB);
    pool_stamp(pool, 123);
}

START_TEST(each_kind_of_event_is_logged)
{
    static struct pool_event event[1024];
    uint64_t first;
    start(true, 1024);
    some_of_everything();
    uint32_t count = pool_events(pool, 0, event, 1024, &first);
    ck_assert_uint_eq(first, 0);
    ck_assert_uint_lt(count, 1024);
    ck_assert_uint_eq(kinds(event, count), (1u << POOL_EVENT_KINDS) - 1);
    ck_assert_int_eq(event[count - 1].kind, POOL_EVENT_STAMP);
    ck_assert_uint_eq(event[count - 1].at, 123);
    pool_stamp(pool, 124); /* no event since */
    ck_assert_uint_eq(pool_events(pool, count, event, 1024, &first), 0);
    stop();
}
END_TEST

START_TEST(moves_are_logged)
{
    start(_i == 0, 1024);
    move_one();
    move_objects();
    stop();
}
END_TEST

/* Objects in slabs of their own, and pieces of a part of a block: moved together once, they do not
 * move again. */
START_TEST(moving_comes_to_an_end)
{
    const struct pool_mover mover = {.move = move};
    unsigned rounds = 0;
    start(_i == 0, 1024);
    pool_set_mover(pool, &mover);
    for (unsigned i = 0; i < 24; i++) {
        const struct pool_ask ask = {
            .size = i % 3 == 0 ? MIB : (18 + i * 2) * KIB, .tenant = 1 + i % 2, .tag = i + 1};
        ck_assert_int_eq(pool_alloc(pool, &ask, &movable[i], NULL), 0);
    }
    for (unsigned i = 0; i < 24; i += 6) {
        give(&movable[i], 0);
    }
    while (pool_defragment(pool, 16 * MIB, NULL)) {
        ck_assert_uint_lt(++rounds, 24);
    }
    for (unsigned i = 0; i < 24; i++) {
        if (i % 6 != 0) {
            give(&movable[i], 0);
        }
    }
    stop();
}
END_TEST

START_TEST(the_last_events_are_kept)
{
    struct pool_event event[16];
    uint64_t first;
    start(_i == 0, 7); /* becomes 8 */
    for (unsigned i = 0; i < 50; i++) {
        struct pool_piece piece = take(100 * KIB, 5);
        give(&piece, 0);
    }
    ck_assert_uint_eq(pool_events(pool, 0, event, 16, &first), 8);
    ck_assert_uint_gt(first, 90);
    for (unsigned i = 0; i < 8; i += 2) {
        ck_assert_int_eq(event[i].kind, POOL_EVENT_HIT);
        ck_assert_int_eq(event[i + 1].kind, POOL_EVENT_FREE);
        ck_assert_uint_eq(event[i].at, event[i + 1].at);
        ck_assert_uint_eq(event[i].size, 100 * KIB);
        ck_assert_uint_eq(event[i + 1].tenant, 5);
    }
    ck_assert_uint_eq(pool_events(pool, first + 6, event, 16, &first), 2);
    stop();
}
END_TEST

/* ---- snapshot ---------------------------------------------------------------------------------*/

START_TEST(a_snapshot_covers_everything_once)
{
    struct pool_piece piece[200];
    start(_i == 0, 0);
    for (unsigned i = 0; i < 200; i++) {
        piece[i] = take(i % 3 == 0 ? 3000 : i % 3 == 1 ? 90 * KIB : 3 * MIB, i % 5);
    }
    for (unsigned i = 0; i < 200; i += 2) {
        give(&piece[i], i + 1);
    }
    uint64_t bytes = pool_snapshot_bytes(pool);
    void *snapshot = malloc(bytes);
    ck_assert_ptr_nonnull(snapshot);
    ck_assert_int_eq(pool_snapshot(pool, snapshot, bytes - 1, NULL), ERR_LIMIT);
    ck_assert_int_eq(pool_snapshot(pool, snapshot, bytes, NULL), 0);
    struct pool_stats s = stats();
    for (unsigned i = 1; i < 200; i += 2) { /* later calls do not change it */
        give(&piece[i], 0);
    }
    uint64_t sum[POOL_EXTENT_LOST + 1] = {0};
    uint64_t at = 0;
    uint64_t live = 0;
    struct pool_cursor cursor = {0};
    for (struct pool_extent x; pool_snapshot_next(snapshot, &cursor, &x); at += x.size) {
        ck_assert_uint_eq(x.at, at);
        ck_assert_uint_gt(x.size, 0);
        ck_assert_uint_le(x.state, POOL_EXTENT_LOST);
        sum[x.state] += x.size;
        live += x.state == POOL_EXTENT_LIVE;
        ck_assert(x.state != POOL_EXTENT_LIVE || x.tenant < 5 || x.tenant == POOL_TENANT_UNKNOWN);
    }
    ck_assert_uint_eq(live, s.live);
    ck_assert_uint_eq(sum[POOL_EXTENT_LIVE], s.used);
    ck_assert_uint_ge(sum[POOL_EXTENT_PENDING], s.pending);
    free(snapshot);
    pool_advance(pool, 0, 200);
    stop();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("what the pool tells");
    TCase *t = tcase_create("telling");
    tcase_add_loop_test(t, each_tier_class_and_tenant_is_counted, 0, 2);
    tcase_add_test(t, parts_of_pages_are_told);
    tcase_add_test(t, each_kind_of_event_is_logged);
    tcase_add_loop_test(t, moves_are_logged, 0, 2);
    tcase_add_loop_test(t, moving_comes_to_an_end, 0, 2);
    tcase_add_loop_test(t, the_last_events_are_kept, 0, 2);
    tcase_add_loop_test(t, a_snapshot_covers_everything_once, 0, 2);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
