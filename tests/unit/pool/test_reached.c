/* The pool asks the device which uses are over, before it refuses a request or moves pieces. */
#include <check.h>
#include <string.h>

#include "daemon/pool/move.h"
#include "daemon/pool/quota.h"
#include "tests/unit/pool/fake_source.h"

#define PAGES   16u
#define STREAMS 4u

static struct fake_source source;
static struct pool *pool;
static struct pool_piece piece[2 * PAGES];
static uint64_t over[STREAMS];
static unsigned asked[STREAMS];
static unsigned moves;

static int reached(void *user, unsigned stream, uint64_t *ret_seq, struct err *e)
{
    ck_assert_ptr_eq(user, &source);
    asked[stream]++;
    if (over[stream] == UINT64_MAX) {
        return err_set(e, ERR_INTERNAL, "no answer");
    }
    *ret_seq = over[stream];
    return 0;
}

static int move(void *user, struct pool_move *m, struct err *e)
{
    (void)user;
    (void)e;
    moves++;
    pool_piece_moved(&piece[m->tag - 1], m);
    return 0;
}

/* A full pool: two pieces in each page. `waits`: may streams wait for each other? */
static void start(bool pages, bool waits)
{
    static const struct pool_mover mover = {.move = move};
    const struct pool_options o = {.limit = PAGES * FAKE_PAGE, .streams = STREAMS};
    memset(over, 0, sizeof over);
    memset(asked, 0, sizeof asked);
    moves = 0;
    (pages ? fake_pages_init : fake_blocks_init)(&source, PAGES * FAKE_PAGE);
    source.source.reached = reached;
    source.source.wait = waits ? source.source.wait : NULL;
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, NULL), 0);
    pool_set_mover(pool, &mover);
    for (unsigned i = 0; i < 2 * PAGES; i++) {
        const struct pool_ask ask = {.size = FAKE_PAGE / 2, .tag = i + 1};
        ck_assert_int_eq(pool_alloc(pool, &ask, &piece[i], NULL), 0);
    }
}

static void stop(void)
{
    struct err e = ERR_INIT;
    ck_assert_msg(pool_check(pool, &e) == 0, "%s", e.text);
    pool_destroy(pool);
    fake_finish(&source);
}

/* Frees pieces [from, to) one after the other, each at a point. */
static void give(unsigned from, unsigned to, unsigned stream, uint64_t seq)
{
    for (unsigned i = from; i < to; i++) {
        ck_assert_int_eq(pool_free(pool, &piece[i], stream, seq, NULL), 0);
    }
}

static int take(uint64_t size, struct pool_piece *ret)
{
    const struct pool_ask ask = {.size = size};
    int rc = pool_alloc(pool, &ask, ret, NULL);
    struct err e = ERR_INIT;
    ck_assert_msg(pool_check(pool, &e) == 0, "%s", e.text);
    return rc;
}

START_TEST(uses_that_are_over_refuse_nothing)
{
    struct pool_piece large;
    struct pool_refusal r;
    start(_i == 0, false);
    give(0, 8, 1, 10);
    give(8, 12, 2, 5);
    ck_assert_int_eq(take(2 * FAKE_PAGE, &large), ERR_DEVICE_MEMORY);
    pool_refusal(pool, &r);
    ck_assert_uint_gt(r.pending, 0);
    ck_assert_uint_eq(asked[0] + asked[3], 0); /* nothing waits for them */
    ck_assert_uint_eq(asked[1], 1);
    ck_assert_uint_eq(asked[2], 1);
    over[1] = 9;
    over[2] = UINT64_MAX;
    ck_assert_int_eq(take(2 * FAKE_PAGE, &large), ERR_DEVICE_MEMORY);
    over[1] = 10;
    ck_assert_int_eq(take(2 * FAKE_PAGE, &large), 0);
    ck_assert_uint_eq(asked[1], 3);
    ck_assert_uint_eq(moves, 0);
    over[2] = 5;
    struct pool_stats s;
    pool_stats(pool, &s);
    ck_assert_uint_eq(s.pending, 2 * FAKE_PAGE); /* it is asked for requests only */
    pool_advance(pool, 1, 10);                   /* the owner learns it later */
    pool_advance(pool, 2, 5);
    pool_stats(pool, &s);
    ck_assert_uint_eq(s.pending, 0);
    stop();
}
END_TEST

/* Waits cost less than asking, moving costs more. */
START_TEST(it_is_asked_between_waits_and_moves)
{
    struct pool_piece a;
    struct pool_piece b;
    start(true, true);
    give(0, 4, 1, 10);
    for (unsigned i = 5; i < 16; i += 2) {
        give(i, i + 1, 0, 0);
    }
    over[1] = 10;
    ck_assert_int_eq(take(2 * FAKE_PAGE, &a), 0);
    ck_assert_uint_eq(source.waited[0][1], 10);
    ck_assert_uint_eq(asked[1], 0);
    ck_assert_int_eq(pool_free(pool, &a, 1, 20, NULL), 0);
    source.source.wait = NULL;
    stop();
    start(true, false);
    give(0, 4, 1, 10);
    for (unsigned i = 5; i < 16; i += 2) {
        give(i, i + 1, 0, 0);
    }
    over[1] = 10;
    ck_assert_int_eq(take(2 * FAKE_PAGE, &a), 0);
    ck_assert_uint_eq(asked[1], 1);
    ck_assert_uint_eq(moves, 0);
    ck_assert_int_eq(take(2 * FAKE_PAGE, &b), 0); /* nothing waits any more */
    ck_assert_uint_eq(asked[1], 1);
    ck_assert_uint_gt(moves, 0);
    stop();
}
END_TEST

/* Objects that another stream may still use hold their slab. */
START_TEST(objects_count_as_well)
{
    struct pool_piece object[8];
    struct pool_piece a;
    start(true, false);
    give(0, 1, 0, 0);
    for (unsigned i = 0; i < 8; i++) {
        ck_assert_int_eq(take(FAKE_PAGE / 64, &object[i]), 0);
    }
    struct pool_piece rest;
    ck_assert_int_eq(take(FAKE_PAGE / 2 - 8 * FAKE_PAGE / 64, &rest), 0);
    for (unsigned i = 0; i < 8; i++) {
        ck_assert_int_eq(pool_free(pool, &object[i], 3, 7, NULL), 0);
    }
    ck_assert_int_eq(take(8 * FAKE_PAGE / 64, &a), ERR_DEVICE_MEMORY);
    ck_assert_uint_eq(asked[3], 1);
    over[3] = 7;
    ck_assert_int_eq(take(8 * FAKE_PAGE / 64, &a), 0);
    stop();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("uses that are over");
    TCase *t = tcase_create("asking");
    tcase_add_loop_test(t, uses_that_are_over_refuse_nothing, 0, 2);
    tcase_add_test(t, it_is_asked_between_waits_and_moves);
    tcase_add_test(t, objects_count_as_well);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
