/* Requests that moving cannot help: how the pool remembers them, and for how long. */
#include <check.h>
#include <stdlib.h>

#include "daemon/pool/move.h"
#include "daemon/pool/quota.h"
#include "tests/unit/pool/fake_source.h"
#include "tests/unit/pool/quick.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)

#define LARGE   (FAKE_PAGE - 128 * KIB) /* pieces of a page each, whatever moves */
#define LARGES  17u                     /* together their free rests are as much as is wanted */
#define OTHERS  4u                      /* other pages, which can become whole */
#define OBJECT  (32 * KIB)
#define OBJECTS 8u /* in a slab */
#define WANTED  (2 * FAKE_PAGE)
#define PIECES  64u

static struct fake_source source;
static struct pool *pool;
static struct pool_piece piece[PIECES];
static struct pool_piece filler[PIECES];
static unsigned pieces, fillers;
static bool refuses; /* refuses to move pieces that are not large */
static bool lasts;   /* moves last until stream 0 reaches `now` */
static uint64_t now;

static int move(void *user, struct pool_move *m, struct err *e)
{
    (void)user;
    if (refuses && m->from->size < LARGE) {
        return err_set(e, ERR_BUSY, "in use");
    }
    m->seq = lasts ? ++now : 0;
    pool_piece_moved(&piece[m->tag - 1], m);
    return 0;
}

static const struct pool_mover mover = {.move = move};

static void take(uint64_t size)
{
    const struct pool_ask ask = {.size = size, .tag = ++pieces};
    ck_assert_uint_le(pieces, PIECES);
    ck_assert_int_eq(pool_alloc(pool, &ask, &piece[pieces - 1], NULL), 0);
}

static void fill(uint64_t size)
{
    const struct pool_ask ask = {.size = size};
    ck_assert_int_eq(pool_alloc(pool, &ask, &filler[fillers++], NULL), 0);
}

static void give(struct pool_piece *p, uint64_t seq)
{
    ck_assert_int_eq(pool_free(pool, p, 0, seq, NULL), 0);
}

/* A full pool with one free page, and large pieces that may move there one after the other. Other
 * pages, if any, lie between them. */
static void start(unsigned others)
{
    const struct pool_options o = {.limit = (1 + LARGES + others) * FAKE_PAGE, .streams = 2};
    pieces = fillers = 0;
    now = 0;
    refuses = lasts = false;
    fake_pages_init(&source, UINT64_C(1) << 36);
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, NULL), 0);
    pool_set_mover(pool, &mover);
    fill(FAKE_PAGE);
    for (unsigned i = 0; i < LARGES; i++) {
        take(LARGE);
        fill(FAKE_PAGE - LARGE);
    }
}

static void ready(void)
{
    while (fillers > 0) {
        give(&filler[--fillers], 0);
    }
}

static void stop(void)
{
    struct err e = ERR_INIT;
    pool_advance(pool, 0, 1000);
    ck_assert_msg(pool_check(pool, &e) == 0, "%s", e.text);
    pool_destroy(pool);
    fake_finish(&source);
}

static uint64_t moves(void)
{
    struct pool_stats s;
    pool_stats(pool, &s);
    return s.moves;
}

/* Returns how many pieces moved for a request that is refused. */
static uint64_t moved_in_vain(void)
{
    const struct pool_ask ask = {.size = WANTED};
    struct pool_piece none;
    uint64_t before = moves();
    ck_assert_int_eq(pool_alloc(pool, &ask, &none, NULL), ERR_DEVICE_MEMORY);
    return moves() - before;
}

static void served(void)
{
    struct pool_piece all;
    const struct pool_ask ask = {.size = WANTED};
    struct err e = ERR_INIT;
    ck_assert_msg(pool_alloc(pool, &ask, &all, &e) == 0, "%s", e.text);
}

/* ---- temporary obstacles ----------------------------------------------------------------------*/

static void halves(uint64_t seq)
{
    for (unsigned i = 0; i < OTHERS; i++) {
        take(FAKE_PAGE / 2);
        take(FAKE_PAGE / 2);
    }
    ready();
    for (unsigned i = 0; i < OTHERS; i++) {
        give(&piece[LARGES + 2 * i + 1], seq);
    }
}

/* Leaves one object in each page, of a slab that stream 0 uses. */
static void slabs(uint64_t seq)
{
    for (unsigned i = 0; i < OTHERS; i++) {
        for (unsigned k = 0; k < OBJECTS; k++) {
            take(OBJECT);
        }
        fill(FAKE_PAGE - OBJECTS * OBJECT);
    }
    ready();
    for (unsigned i = 0; i < OTHERS * OBJECTS; i++) {
        if (i % OBJECTS != 0) {
            give(&piece[LARGES + i], seq);
        }
    }
}

/* Moving helps too little, and pieces that would help may not move yet. Later they may, without any
 * free: the stream advances, or the owner no longer refuses. */
START_TEST(what_was_in_the_way_is_looked_at_again)
{
    start(OTHERS);
    refuses = _i == 0;
    if (_i == 2) {
        slabs(1);
    } else {
        halves(_i == 1 ? 1 : 0);
    }
    ck_assert_uint_gt(moved_in_vain(), 0);
    refuses = false;
    pool_advance(pool, 0, 1);
    served();
    stop();
}
END_TEST

/* The pool waits for pieces that are moving; otherwise they would move again with each request. */
START_TEST(what_moves_is_waited_for)
{
    start(OTHERS);
    refuses = lasts = true;
    halves(0);
    ck_assert_uint_gt(moved_in_vain(), 0);
    ck_assert_uint_eq(moved_in_vain(), 0);
    pool_advance(pool, 0, now);
    ck_assert_uint_gt(moved_in_vain(), 0);
    pool_advance(pool, 0, now);
    refuses = false;
    lasts = false;
    served();
    stop();
}
END_TEST

/* ---- slices -----------------------------------------------------------------------------------*/

#define SMALL   (100 * KIB)
#define MILLION 1000000u
#define MOVABLE 4000u /* the last pieces: all others are in the way */

static struct pool_piece *many;
static unsigned others_served;

static uint64_t work(void)
{
    struct pool_stats s;
    pool_stats(pool, &s);
    return s.work;
}

static int move_many(void *user, struct pool_move *m, struct err *e)
{
    (void)user;
    if (refuses) {
        return err_set(e, ERR_BUSY, "in use");
    }
    m->stream = 1;
    m->seq = lasts ? ++now : 0;
    pool_piece_moved(&many[m->tag - 1], m);
    return 0;
}

/* A million pieces fill the pool; every fourth of the movable ones, and every hundredth of the
 * others, is free. */
static void start_many(void)
{
    static const struct pool_mover moves_many = {.move = move_many};
    const struct pool_options o = {.limit = (MILLION * SMALL / FAKE_PAGE + 1) * FAKE_PAGE,
                                   .streams = 2};
    refuses = lasts = false;
    now = 0;
    others_served = 0;
    many = calloc(MILLION, sizeof *many);
    ck_assert_ptr_nonnull(many);
    fake_pages_init(&source, UINT64_C(1) << 40);
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, NULL), 0);
    for (unsigned i = 0; i < MILLION; i++) {
        const struct pool_ask ask = {.size = SMALL, .tag = i >= MILLION - MOVABLE ? i + 1 : 0};
        ck_assert_int_eq(pool_alloc(pool, &ask, &many[i], NULL), 0);
    }
    for (unsigned i = 0; i < MILLION; i++) {
        if (i % (i >= MILLION - MOVABLE ? 4 : 100) == 0) {
            give(&many[i], 0);
        }
    }
    pool_set_mover(pool, &moves_many);
}

static void stop_many(void)
{
    stop();
    free(many);
}

static struct pool_refusal refusal(void)
{
    struct pool_refusal r;
    pool_refusal(pool, &r);
    return r;
}

/* One try. No try does more than its slice, and another tenant is served after each. */
static int try_many(uint64_t size, struct pool_piece *ret)
{
    const struct pool_ask ask = {.size = size, .tenant = 1};
    const struct pool_ask other = {.size = SMALL - 16 * KIB, .tenant = 2};
    struct pool_piece piece_of_other;
    uint64_t before = work();
    int rc = pool_alloc(pool, &ask, ret, NULL);
    ck_assert_uint_lt(work() - before, 2 * POOL_SLICE);
    if (rc != 0) {
        bool moves = refusal().moves;
        ck_assert_int_eq(pool_alloc(pool, &other, &piece_of_other, NULL), 0);
        give(&piece_of_other, 0);
        others_served++;
        return moves ? 1 : rc;
    }
    return 0;
}

/* Copies that last (_i 1) or not. */
START_TEST(pieces_move_in_slices)
{
    struct pool_piece large;
    struct pool_stats before;
    struct pool_stats after;
    start_many();
    lasts = _i == 1;
    pool_stats(pool, &before);
    int rc = try_many(16 * FAKE_PAGE, &large);
    while (rc == 1) {
        rc = try_many(16 * FAKE_PAGE, &large);
    }
    while (rc != 0 && _i == 1) {
        ck_assert(rc == 1 || refusal().full || refusal().pending > 0);
        pool_advance(pool, 1, now);
        rc = try_many(16 * FAKE_PAGE, &large);
    }
    ck_assert_int_eq(rc, 0);
    pool_stats(pool, &after);
    ck_assert_uint_gt(others_served, MILLION / POOL_SLICE / 2);
    ck_assert_uint_gt(after.moves, before.moves);
    ck_assert(_i == 1 || after.failures == before.failures);
    give(&large, 0);
    stop_many();
}
END_TEST

/* What cannot be helped is refused in the end, and then at once. */
START_TEST(slices_have_an_end)
{
    struct pool_piece large;
    unsigned tries = 0;
    start_many();
    pool_set_mover(pool, &(struct pool_mover){.move = move_many});
    const uint64_t all = 300 * FAKE_PAGE; /* there are not so many whole pages among the movable */
    int rc = try_many(all, &large);
    while (rc == 1) {
        rc = try_many(all, &large);
        ck_assert_uint_lt(++tries, 20 * MILLION / POOL_SLICE);
    }
    ck_assert_int_eq(rc, ERR_DEVICE_MEMORY);
    stop_many();
}
END_TEST

/* ---- moving that cannot help ------------------------------------------------------------------*/

/* Does the pool look for pieces to move, for a request that is refused? */
static bool looked(void)
{
    uint64_t before = work();
    (void)moved_in_vain();
    return work() > before;
}

/* A new limit, quota, mover or free may change it. */
START_TEST(what_did_not_help_is_not_moved_again)
{
    uint64_t moved;
    start(0);
    ready();
    ck_assert_uint_gt(moved_in_vain(), 0);
    ck_assert(!looked());
    ck_assert(!pool_defragment(pool, FAKE_PAGE, &moved));
    ck_assert_uint_eq(moved, 0);
    pool_set_limit(pool, (1 + LARGES) * FAKE_PAGE);
    ck_assert(looked());
    ck_assert(!looked());
    ck_assert_int_eq(pool_set_quota(pool, 1, &POOL_QUOTA_NONE, NULL), 0);
    ck_assert(looked());
    ck_assert(!looked());
    pool_set_mover(pool, &mover);
    ck_assert(looked());
    ck_assert(!looked());
    give(&piece[0], 0);
    take(LARGE);
    ck_assert(looked());
    ck_assert(!looked());
    stop();
}
END_TEST

#define TRIES 200u

static bool some(struct pool_piece *ret)
{
    const struct pool_ask ask = {.size = 128 * KIB, .tenant = 1};
    return pool_alloc(pool, &ask, ret, NULL) == 0;
}

/* An owner that gives back what it got in a try, as a job does that needs more: pieces do not move
 * in circles for it, though it refuses some and the copies end each time. They move again when
 * others may move (_i 0), and for a request that needs less (_i 1). */
START_TEST(tries_do_not_move_pieces_in_circles)
{
    struct pool_piece got;
    uint64_t last = 0;
    start(OTHERS);
    refuses = lasts = true;
    halves(0);
    for (unsigned n = 0; n < TRIES; n++) {
        ck_assert(some(&got));
        last = moved_in_vain() > 0 ? n : last;
        give(&got, 0);
        pool_advance(pool, 0, now);
    }
    ck_assert_uint_gt(last, 0);
    ck_assert_uint_lt(last, TRIES / 2);
    refuses = lasts = false;
    if (_i == 0) {
        ck_assert(some(&got));
        ck_assert_uint_eq(moved_in_vain(), 0);
        pool_move_anew(pool);
    }
    served();
    stop();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("moving that does not help");
    TCase *t = tcase_create("moving");
    tcase_add_loop_test(t, what_was_in_the_way_is_looked_at_again, 0, 3);
    tcase_add_test(t, what_moves_is_waited_for);
    tcase_add_test(t, what_did_not_help_is_not_moved_again);
    tcase_add_loop_test(t, tries_do_not_move_pieces_in_circles, 0, 2);
    tcase_add_loop_test(t, pieces_move_in_slices, 0, 2);
    tcase_add_test(t, slices_have_an_end);
    tcase_set_timeout(t, 120);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
