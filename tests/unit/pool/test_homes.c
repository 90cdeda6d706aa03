/* Moving live pieces out of whole blocks of a source: homes of several sizes. */
#include <check.h>
#include <stdlib.h>

#include "daemon/pool/move.h"
#include "tests/unit/pool/fake_source.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)

static struct fake_source source;
static struct pool *pool;
static struct pool_piece piece[32]; /* by tag - 1 */

static int move(void *user, struct pool_move *m, struct err *e)
{
    (void)user;
    (void)e;
    pool_piece_moved(&piece[m->tag - 1], m);
    return 0;
}

static void start(uint64_t limit)
{
    const struct pool_options o = {.limit = limit, .streams = 1};
    const struct pool_mover mover = {.move = move};
    fake_blocks_init(&source, UINT64_C(1) << 36);
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, NULL), 0);
    pool_set_mover(pool, &mover);
}

static void stop(void)
{
    struct err e = ERR_INIT;
    ck_assert_msg(pool_check(pool, &e) == 0, "%s", e.text);
    pool_destroy(pool);
    fake_finish(&source);
}

/* tag 0: it never moves. */
static struct pool_piece take(uint64_t size, uint64_t tag)
{
    struct err e = ERR_INIT;
    const struct pool_ask ask = {.size = size, .tenant = 1, .tag = tag};
    struct pool_piece taken;
    ck_assert_msg(pool_alloc(pool, &ask, &taken, &e) == 0, "%s", e.text);
    return taken;
}

static void take_tagged(unsigned i, uint64_t size)
{
    piece[i] = take(size, i + 1);
}

static void give(struct pool_piece *p)
{
    ck_assert_int_eq(pool_free(pool, p, 0, 0, NULL), 0);
}

static struct pool_stats stats(void)
{
    struct pool_stats s;
    pool_stats(pool, &s);
    return s;
}

/* A large home has little in use and a small one less: all pieces of the large one go into the
 * small one. */
START_TEST(a_large_home_is_emptied_into_smaller_ones)
{
    start(10 * MIB);
    struct pool_piece all = take(8 * MIB, 0);
    give(&all);
    struct pool_piece most = take(7 * MIB + 256 * KIB, 0); /* there again */
    for (unsigned i = 0; i < 3; i++) {
        take_tagged(i, 200 * KIB);
        ck_assert_ptr_eq(piece[i].range, most.range);
    }
    take_tagged(3, 300 * KIB); /* no room there */
    ck_assert_ptr_ne(piece[3].range, most.range);
    give(&most);
    all = take(8 * MIB, 0);
    ck_assert_uint_gt(stats().moves, 0);
    give(&all);
    for (unsigned i = 0; i < 4; i++) {
        give(&piece[i]);
    }
    stop();
}
END_TEST

/* The closest gap lies in a home with less in use than the home to empty; another gap does not. */
START_TEST(a_wider_gap_serves_where_the_closest_may_not)
{
    start(6 * MIB);
    struct pool_piece e[3] = {take(300 * KIB, 0), take(100 * KIB, 0), take(1648 * KIB, 0)};
    struct pool_piece a[3] = {take(600 * KIB, 0), take(500 * KIB, 0), take(948 * KIB, 0)};
    ck_assert_ptr_eq(e[0].range, e[2].range);
    ck_assert_ptr_eq(a[0].range, a[2].range);
    take_tagged(0, 300 * KIB);
    struct pool_piece rest = take(1700 * KIB, 0); /* until the gaps elsewhere exist */
    ck_assert_ptr_eq(piece[0].range, rest.range);
    give(&e[0]); /* exactly the size that moves */
    give(&e[2]);
    give(&a[1]);
    give(&rest);
    struct pool_piece whole = take(2 * MIB, 0);
    ck_assert_uint_eq(stats().moves, 1);
    ck_assert_ptr_eq(piece[0].range, a[0].range);
    give(&whole);
    give(&e[1]);
    give(&a[0]);
    give(&a[2]);
    give(&piece[0]);
    stop();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pool homes");
    TCase *t = tcase_create("homes");
    tcase_add_test(t, a_large_home_is_emptied_into_smaller_ones);
    tcase_add_test(t, a_wider_gap_serves_where_the_closest_may_not);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
