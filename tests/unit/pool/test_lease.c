/* The pool's budget: more of it, and less by a deadline. */
#include <check.h>
#include <string.h>

#include "daemon/pool/lease.h"
#include "daemon/pool/place.h"
#include "daemon/pool/quota.h"
#include "tests/unit/pool/fake_source.h"

#define KIB   UINT64_C(1024)
#define MIB   (KIB * KIB)
#define GIB   (MIB * KIB)
#define LIMIT (64 * MIB)
#define KINDS 2 /* sources: pages, blocks */

static struct fake_source source;
static struct pool *pool;
static struct err err;
static struct pool_piece piece[16];

static void start(int kind)
{
    const struct pool_options o = {.limit = LIMIT, .streams = 3};
    (kind == 0 ? fake_pages_init : fake_blocks_init)(&source, GIB);
    memset(piece, 0, sizeof piece);
    ck_assert_msg(pool_create(&source.source, &o, &pool, &err) == 0, "%s", err.text);
}

static struct pool_lease lease(void)
{
    struct pool_lease l;
    struct err e = ERR_INIT;
    ck_assert_msg(pool_check(pool, &e) == 0, "%s", e.text);
    pool_lease(pool, &l);
    return l;
}

static void stop(void)
{
    (void)lease();
    pool_destroy(pool);
    fake_finish(&source);
}

static int take(unsigned i, uint64_t size, unsigned tenant)
{
    const struct pool_ask ask = {.size = size, .tenant = tenant};
    err = ERR_INIT;
    return pool_alloc(pool, &ask, &piece[i], &err);
}

static void give(unsigned i, uint64_t seq)
{
    ck_assert_int_eq(pool_free(pool, &piece[i], 0, seq, &err), 0);
}

static int set(uint64_t budget, uint64_t deadline_ns)
{
    err = ERR_INIT;
    return pool_lease_set(pool, budget, deadline_ns, &err);
}

/* Eight pieces of 8 MiB, which fill the pool. */
static void fill(void)
{
    for (unsigned i = 0; i < 8; i++) {
        ck_assert_msg(take(i, 8 * MIB, 1) == 0, "%s", err.text);
    }
}

START_TEST(more_counts_at_once)
{
    start(_i);
    fill();
    ck_assert_int_eq(take(8, 8 * MIB, 1), ERR_DEVICE_MEMORY);
    ck_assert_int_eq(set(LIMIT + 8 * MIB, 0), 0);
    ck_assert_int_eq((int)lease().state, POOL_LEASE_HELD);
    ck_assert_uint_eq(lease().room, 8 * MIB);
    ck_assert_int_eq(take(8, 8 * MIB, 1), 0);
    ck_assert_int_eq(take(9, 8 * MIB, 1), ERR_DEVICE_MEMORY);
    stop();
}
END_TEST

/* What is free goes first, a slice at a time; then each free gives its memory back. */
START_TEST(less_goes_back_step_by_step)
{
    start(_i);
    fill();
    for (unsigned i = 0; i < 6; i += 2) { /* not neighbours */
        give(i, 0);
    }
    ck_assert_int_eq(set(24 * MIB, 100), 0);
    struct pool_lease l = lease();
    ck_assert_int_eq((int)l.state, POOL_LEASE_RECALLED);
    ck_assert_uint_eq(l.asked, 40 * MIB);
    ck_assert_uint_eq(l.missing, 40 * MIB);
    ck_assert_uint_eq(l.idle, 24 * MIB);
    ck_assert_uint_eq(l.excess, 16 * MIB);
    ck_assert_uint_eq(pool_lease_tick(pool, 8 * MIB, 1), 8 * MIB);
    ck_assert_uint_eq(lease().given, 8 * MIB);
    ck_assert_uint_eq(source.taken, 56 * MIB);
    ck_assert_uint_eq(pool_lease_tick(pool, GIB, 2), 16 * MIB);
    ck_assert_uint_eq(pool_lease_tick(pool, GIB, 3), 0);
    ck_assert_uint_eq(lease().idle, 0);
    give(1, 0);
    ck_assert_uint_eq(source.taken, 32 * MIB);
    ck_assert_int_eq((int)lease().state, POOL_LEASE_RECALLED);
    give(3, 0);
    ck_assert_uint_eq(source.taken, 24 * MIB);
    ck_assert_uint_eq(pool_lease_tick(pool, GIB, 4), 0);
    l = lease();
    ck_assert_int_eq((int)l.state, POOL_LEASE_HELD);
    ck_assert_uint_eq(l.given, 40 * MIB);
    ck_assert_uint_eq(l.missing, 0);
    give(5, 0);
    ck_assert_int_eq(take(5, 8 * MIB, 1), 0); /* within the budget all goes on */
    ck_assert_int_eq(take(8, 8 * MIB, 1), ERR_DEVICE_MEMORY);
    stop();
}
END_TEST

/* Memory that its stream may still use goes back once that is past; no request gets it before. */
START_TEST(what_streams_use_goes_back_later)
{
    start(_i);
    fill();
    ck_assert_int_eq(set(32 * MIB, 100), 0);
    give(0, 5);
    give(1, 6);
    ck_assert_uint_eq(pool_lease_tick(pool, GIB, 1), 0);
    ck_assert_int_eq(take(0, 8 * MIB, 1), ERR_DEVICE_MEMORY);
    ck_assert_ptr_nonnull(strstr(err.text, "have to go back"));
    pool_advance(pool, 0, 5);
    ck_assert_uint_eq(pool_lease_tick(pool, GIB, 2), 8 * MIB);
    pool_advance(pool, 0, 6);
    ck_assert_uint_eq(pool_lease_tick(pool, GIB, 3), 8 * MIB);
    ck_assert_uint_eq(lease().missing, 16 * MIB);
    stop();
}
END_TEST

/* Addresses that are kept are no memory: what lies there goes back, too. */
START_TEST(vacated_memory_goes_back)
{
    struct pool_place place;
    start(_i);
    fill();
    ck_assert_int_eq(pool_vacate(pool, &piece[0], 0, 5, &place, &err), 0);
    ck_assert_int_eq(set(56 * MIB, 100), 0);
    pool_advance(pool, 0, 5);
    ck_assert_uint_eq(pool_lease_tick(pool, GIB, 1), 8 * MIB);
    ck_assert_int_eq((int)lease().state, POOL_LEASE_HELD);
    ck_assert_uint_eq(source.taken, 56 * MIB);
    stop();
}
END_TEST

START_TEST(after_the_deadline_it_is_overdue_until_it_is_met)
{
    start(_i);
    fill();
    ck_assert_int_eq(set(56 * MIB, 100), 0);
    ck_assert_uint_eq(pool_lease_tick(pool, GIB, 99), 0);
    ck_assert_int_eq((int)lease().state, POOL_LEASE_RECALLED);
    ck_assert_uint_eq(pool_lease_tick(pool, GIB, 100), 0);
    struct pool_lease l = lease();
    ck_assert_int_eq((int)l.state, POOL_LEASE_OVERDUE);
    ck_assert_uint_eq(l.missing, 8 * MIB);
    ck_assert_uint_eq(l.excess, 8 * MIB);
    give(0, 5);
    pool_advance(pool, 0, 5);
    ck_assert_uint_eq(pool_lease_tick(pool, GIB, 101), 8 * MIB);
    ck_assert_int_eq((int)lease().state, POOL_LEASE_HELD);
    stop();
}
END_TEST

/* One tick gives what is free, and the rest is overdue. */
START_TEST(no_time_at_all)
{
    start(_i);
    fill();
    give(7, 0);
    ck_assert_int_eq(set(48 * MIB, 0), 0);
    ck_assert_uint_eq(pool_lease_tick(pool, GIB, 1), 8 * MIB);
    ck_assert_int_eq((int)lease().state, POOL_LEASE_OVERDUE);
    ck_assert_uint_eq(lease().missing, 8 * MIB);
    stop();
}
END_TEST

START_TEST(a_recall_replaces_the_one_under_way)
{
    start(_i);
    fill();
    ck_assert_int_eq(set(32 * MIB, 10), 0);
    give(0, 0);
    ck_assert_uint_eq(lease().given, 8 * MIB);
    ck_assert_int_eq(set(40 * MIB, 20), 0);
    struct pool_lease l = lease();
    ck_assert_uint_eq(l.asked, 16 * MIB);
    ck_assert_uint_eq(l.given, 0);
    ck_assert_uint_eq(l.deadline_ns, 20);
    ck_assert_uint_eq(pool_lease_tick(pool, GIB, 15), 0);
    ck_assert_int_eq((int)lease().state, POOL_LEASE_RECALLED);
    ck_assert_int_eq(set(LIMIT, 0), 0); /* and more ends it */
    ck_assert_int_eq((int)lease().state, POOL_LEASE_HELD);
    ck_assert_int_eq(take(0, 8 * MIB, 1), 0);
    stop();
}
END_TEST

/* A refused budget changes nothing. */
START_TEST(a_budget_that_cannot_be)
{
    const struct pool_quota kept = {UINT64_MAX, UINT64_MAX, 24 * MIB};
    start(_i);
    ck_assert_int_eq(set(0, 10), ERR_INVALID);
    ck_assert_int_eq(pool_set_quota(pool, 2, &kept, &err), 0);
    ck_assert_int_eq(set(24 * MIB - 1, 10), ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.text, "guarantee less"));
    ck_assert_int_eq(pool_reserve(pool, 1, 20 * MIB, &err), 0);
    ck_assert_int_eq(pool_stay(pool, 1, 10 * MIB, &err), 0);
    ck_assert_int_eq(set(54 * MIB - 1, 10), ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.text, "free some of these"));
    ck_assert_uint_eq(lease().budget, LIMIT);
    ck_assert_int_eq(set(54 * MIB, 10), 0);
    pool_unstay(pool, 1, 10 * MIB);
    pool_unreserve(pool, 1, 20 * MIB);
    ck_assert_int_eq(set(24 * MIB, 10), 0);
    ck_assert_uint_eq(lease().budget, 24 * MIB);
    stop();
}
END_TEST

/* What stays is within the tenant's guarantee, or within one share of all others. */
START_TEST(what_stays_has_limits)
{
    const struct pool_quota kept = {UINT64_MAX, UINT64_MAX, 24 * MIB};
    start(0);
    pool_stay_most(pool, 8 * MIB);
    ck_assert_int_eq(pool_set_quota(pool, 1, &kept, &err), 0);
    ck_assert_int_eq(pool_stay(pool, 1, 24 * MIB, &err), 0);
    ck_assert_int_eq(pool_stay(pool, 1, 1, &err), ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.text, "guaranteed to the tenant"));
    ck_assert_int_eq(pool_stay(pool, 2, 5 * MIB, &err), 0);
    ck_assert_int_eq(pool_stay(pool, 3, 3 * MIB + 1, &err), ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.text, "without guaranteed memory"));
    ck_assert_int_eq(pool_stay(pool, 3, 3 * MIB, &err), 0);
    ck_assert_int_eq(pool_stay(pool, POOL_TENANTS, 1, &err), ERR_INVALID);
    pool_unstay(pool, 2, UINT64_MAX); /* all that is left of it */
    pool_unstay(pool, POOL_TENANTS, 1);
    ck_assert_int_eq(pool_stay(pool, 3, 5 * MIB, &err), 0);
    stop();
}
END_TEST

START_TEST(the_largest_handle_is_a_small_share)
{
    const struct pool_pages pages = {.page_bytes = 2 * MIB, .handle_max = GIB};
    const struct pool_pages plain = {.page_bytes = 2 * MIB};
    ck_assert_uint_eq(pool_handle_most(&pages, 0), 2 * MIB);
    ck_assert_uint_eq(pool_handle_most(&pages, 4 * GIB), 4 * MIB);
    ck_assert_uint_eq(pool_handle_most(&pages, 4 * GIB - 1), 2 * MIB);
    ck_assert_uint_eq(pool_handle_most(&pages, 192 * GIB), 128 * MIB);
    ck_assert_uint_eq(pool_handle_most(&pages, UINT64_MAX), GIB);
    ck_assert_uint_eq(pool_handle_most(&plain, UINT64_MAX), 2 * MIB);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pool_lease");
    TCase *t = tcase_create("lease");
    tcase_add_loop_test(t, more_counts_at_once, 0, KINDS);
    tcase_add_loop_test(t, less_goes_back_step_by_step, 0, KINDS);
    tcase_add_loop_test(t, what_streams_use_goes_back_later, 0, KINDS);
    tcase_add_loop_test(t, vacated_memory_goes_back, 0, KINDS);
    tcase_add_loop_test(t, after_the_deadline_it_is_overdue_until_it_is_met, 0, KINDS);
    tcase_add_loop_test(t, no_time_at_all, 0, KINDS);
    tcase_add_loop_test(t, a_recall_replaces_the_one_under_way, 0, KINDS);
    tcase_add_loop_test(t, a_budget_that_cannot_be, 0, KINDS);
    tcase_add_test(t, what_stays_has_limits);
    tcase_add_test(t, the_largest_handle_is_a_small_share);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
