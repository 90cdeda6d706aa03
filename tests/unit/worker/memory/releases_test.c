/* Items that are given up while something is in flight are released when nothing is, or after a
 * while. */
#include <check.h>
#include <stdlib.h>

#include "daemon/worker/memory/releases.h"

struct item {
    struct release release;
    unsigned number;
};

static struct releases releases;
static uint64_t oldest_ns; /* since when the oldest job is in flight; 0: there is none */
static bool idle;
static unsigned gone[8];
static unsigned gone_count;

static bool is_idle(void *data)
{
    ck_assert_ptr_eq(data, &idle);
    return idle;
}

static uint64_t since(void *data)
{
    ck_assert_ptr_eq(data, &idle);
    return oldest_ns;
}

static void go(void *data)
{
    struct item *item = data;
    gone[gone_count++] = item->number;
    free(item);
}

static struct item *put_of(unsigned number, uint64_t bytes)
{
    struct item *item = calloc(1, sizeof *item);
    ck_assert_ptr_nonnull(item);
    item->number = number;
    release_put(&releases, &item->release, bytes, go, item);
    return item;
}

static struct item *put(unsigned number)
{
    return put_of(number, 0);
}

static void start(bool now)
{
    idle = now;
    gone_count = 0;
    oldest_ns = now ? 0 : clock_now_ns();
    releases_init(&releases, is_idle, since, &idle);
}

START_TEST(at_once_where_nothing_is_in_flight)
{
    struct item *item = calloc(1, sizeof *item);
    ck_assert_ptr_nonnull(item);
    start(true);
    (void)put(1);
    ck_assert_uint_eq(gone_count, 1);
    idle = false;
    release_put(NULL, &item->release, 0, go, item); /* a driver that does not wait */
    ck_assert_uint_eq(gone_count, 2);
}
END_TEST

START_TEST(in_order_when_nothing_is_any_more)
{
    start(false);
    for (unsigned i = 1; i <= 3; i++) {
        (void)put(i);
    }
    releases_turn(&releases);
    ck_assert_uint_eq(gone_count, 0);
    idle = true;
    releases_turn(&releases);
    ck_assert_uint_eq(gone_count, 3);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_uint_eq(gone[i], i + 1);
    }
    idle = false;
    (void)put(4); /* the list is whole again */
    (void)put(5);
    releases_finish(&releases);
    ck_assert_uint_eq(gone_count, 5);
    ck_assert_uint_eq(gone[4], 5);
}
END_TEST

/* A device that is never idle waits once for old items, not for new ones, and not while a job runs
 * for long. */
START_TEST(no_longer_than_a_while)
{
    start(false);
    struct item *old = put(1);
    (void)put(2);
    ck_assert_uint_ge(clock_now_ns(), old->release.since_ns);
    old->release.since_ns -= RELEASES_NS;
    oldest_ns -= RELEASES_WAIT_NS;
    releases_turn(&releases);
    ck_assert_uint_eq(gone_count, 0);
    oldest_ns = 0; /* copies only */
    releases_turn(&releases);
    ck_assert_uint_eq(gone_count, 1);
    ck_assert_uint_eq(gone[0], 1);
    releases_finish(&releases);
    ck_assert_uint_eq(gone_count, 2);
}
END_TEST

/* Memory that counts for no limit any more does not pile up behind a long job. */
START_TEST(no_more_than_so_much)
{
    start(false);
    oldest_ns -= RELEASES_WAIT_NS;
    (void)put_of(1, RELEASES_BYTES / 2);
    (void)put_of(2, RELEASES_BYTES / 2);
    releases_turn(&releases);
    ck_assert_uint_eq(gone_count, 0);
    (void)put_of(3, 1);
    releases_turn(&releases);
    ck_assert_uint_eq(gone_count, 1);
    ck_assert_uint_eq(gone[0], 1);
    releases_finish(&releases);
    ck_assert_uint_eq(gone_count, 3);
    ck_assert_uint_eq(releases.bytes, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("worker releases");
    TCase *t = tcase_create("releases");
    tcase_add_test(t, at_once_where_nothing_is_in_flight);
    tcase_add_test(t, in_order_when_nothing_is_any_more);
    tcase_add_test(t, no_longer_than_a_while);
    tcase_add_test(t, no_more_than_so_much);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
