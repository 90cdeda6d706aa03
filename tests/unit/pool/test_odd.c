/* Requests and guarantees that are too large, or odd; tenants that take and free without end; a
 * device that lies about its free memory. Errors have types, and the accounts stay right. */
#include <check.h>

#include "daemon/pool/pressure.h"
#include "daemon/pool/quota.h"
#include "tests/unit/pool/fake_source.h"

#define MIB     (UINT64_C(1) << 20)
#define PAGES   200u
#define TENANTS 100u
#define SECOND  UINT64_C(1000000000)

static struct fake_source source;
static struct pool *pool;

static void check(void)
{
    struct err e = ERR_INIT;
    ck_assert_msg(pool_check(pool, &e) == 0, "%s", e.text);
}

static void start(bool pages, uint64_t capacity)
{
    const struct pool_options o = {
        .limit = PAGES * FAKE_PAGE, .streams = 2, .trim_age_ns = SECOND / 10};
    (pages ? fake_pages_init : fake_blocks_init)(&source, capacity);
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, NULL), 0);
}

static void stop(void)
{
    check();
    pool_destroy(pool);
    fake_finish(&source);
}

static int take(uint64_t size, unsigned tenant, struct pool_piece *ret)
{
    const struct pool_ask ask = {.size = size, .tenant = tenant};
    return pool_alloc(pool, &ask, ret, NULL);
}

static void give(struct pool_piece *piece)
{
    ck_assert_int_eq(pool_free(pool, piece, 0, 0, NULL), 0);
}

static int guarantee(unsigned tenant, uint64_t bytes)
{
    const struct pool_quota q = {UINT64_MAX, UINT64_MAX, bytes};
    return pool_set_quota(pool, tenant, &q, NULL);
}

START_TEST(no_guarantee_exceeds_the_device)
{
    struct pool_piece all;
    start(_i == 0, UINT64_C(1) << 36);
    ck_assert_int_eq(guarantee(1, PAGES * FAKE_PAGE + 1), ERR_LIMIT);
    ck_assert_int_eq(guarantee(1, UINT64_MAX), ERR_LIMIT);
    ck_assert_uint_eq(pool_kept(pool, 2), 0);
    ck_assert_int_eq(take(PAGES * FAKE_PAGE, 2, &all), 0);
    ck_assert_int_eq(guarantee(1, PAGES * FAKE_PAGE), 0); /* nothing is reclaimed for it */
    ck_assert_int_eq(take(1, 1, &all), ERR_DEVICE_MEMORY);
    ck_assert_int_eq(guarantee(2, 1), ERR_LIMIT);
    stop();
}
END_TEST

START_TEST(guarantees_may_take_the_whole_device)
{
    static struct pool_piece piece[TENANTS + 1];
    const uint64_t each = PAGES / TENANTS * FAKE_PAGE;
    struct pool_piece none;
    start(_i == 0, UINT64_C(1) << 36);
    for (unsigned t = 1; t <= TENANTS; t++) {
        ck_assert_int_eq(guarantee(t, each), 0);
    }
    ck_assert_int_eq(guarantee(TENANTS + 1, 1), ERR_LIMIT);
    ck_assert_int_eq(take(1, TENANTS + 1, &none), ERR_DEVICE_MEMORY);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned t = 1; t <= TENANTS; t++) {
            ck_assert_int_eq(take(each, t, &piece[t]), 0);
            ck_assert_int_eq(take(1, t, &none), ERR_DEVICE_MEMORY);
        }
        check();
        for (unsigned t = 1 + round % 2; t <= TENANTS; t += 2) {
            give(&piece[t]);
        }
        for (unsigned t = 1 + round % 2; t <= TENANTS; t += 2) {
            ck_assert_int_eq(take(1, TENANTS + 1, &none), ERR_DEVICE_MEMORY);
            ck_assert_int_eq(take(each, t, &piece[t]), 0);
        }
        for (unsigned t = 1; t <= TENANTS; t++) {
            give(&piece[t]);
        }
    }
    stop();
}
END_TEST

/* A tenant that takes and frees one page without end needs no call of the driver, and takes nothing
 * from the others. */
START_TEST(a_loop_of_one_page_starves_nobody)
{
    struct pool_piece page;
    struct pool_piece other[PAGES];
    struct pool_stats before;
    struct pool_stats after;
    unsigned count = 0;
    start(_i == 0, UINT64_C(1) << 36);
    ck_assert_int_eq(guarantee(2, (PAGES - 1) * FAKE_PAGE), 0);
    for (unsigned n = 0; n < 3; n++) {
        ck_assert_int_eq(take(FAKE_PAGE, 1, &page), 0);
        give(&page);
    }
    pool_stats(pool, &before);
    for (unsigned n = 0; n < 10000; n++) {
        ck_assert_int_eq(take(FAKE_PAGE, 1, &page), 0);
        give(&page);
    }
    pool_stats(pool, &after);
    ck_assert_uint_eq(after.driver_calls, before.driver_calls);
    for (unsigned n = 0; n < 10 * PAGES; n++) {
        ck_assert_int_eq(take(FAKE_PAGE, 1, &page), 0);
        if (n % 10 == 0 && count < PAGES - 1) {
            ck_assert_int_eq(take(FAKE_PAGE, 2, &other[count++]), 0);
        }
        give(&page);
    }
    ck_assert_uint_eq(count, PAGES - 1);
    while (count > 0) {
        give(&other[--count]);
    }
    stop();
}
END_TEST

/* Pieces of one page lie in a row, wherever there is room for them; larger ones of whole pages
 * begin at a page border. While memory is kept for a tenant, those of one page do, too. */
START_TEST(a_piece_of_one_page_lies_anywhere)
{
    struct pool_piece a[3];
    start(true, UINT64_C(1) << 36);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(take(FAKE_PAGE, 0, &a[i]), 0);
        ck_assert_uint_eq(a[i].offset, i * (uint64_t)FAKE_PAGE);
    }
    for (unsigned i = 0; i < 3; i++) {
        give(&a[i]);
    }
    ck_assert_uint_eq(pool_trim(pool, 3 * FAKE_PAGE), 0); /* they are one free part now */
    ck_assert_int_eq(take(FAKE_PAGE / 2, 0, &a[0]), 0);
    const uint64_t pages = 1 + (unsigned)_i % 2;
    const bool kept = _i >= 2;
    ck_assert_int_eq(guarantee(1, kept ? FAKE_PAGE : 0), 0);
    ck_assert_int_eq(take(pages * FAKE_PAGE, 0, &a[1]), 0);
    ck_assert_uint_eq(a[1].offset, kept || pages > 1 ? FAKE_PAGE : FAKE_PAGE / 2);
    stop();
}
END_TEST

START_TEST(odd_sizes_have_answers)
{
    static const uint64_t much[] = {UINT64_C(1) << 63,       UINT64_MAX,
                                    UINT64_MAX - 255,        UINT64_MAX - FAKE_PAGE,
                                    (UINT64_C(1) << 63) + 1, PAGES * FAKE_PAGE + 1};
    static const uint64_t odd[] = {1, 255, 257, FAKE_PAGE - 1, FAKE_PAGE + 1, 3 * MIB + 12345};
    struct pool_piece piece;
    start(_i % 2 == 0, UINT64_C(1) << 36);
    if (_i >= 2) {
        ck_assert_int_eq(guarantee(3, 7 * FAKE_PAGE + 4097), 0);
    }
    ck_assert_int_eq(take(0, 1, &piece), ERR_INVALID);
    for (unsigned i = 0; i < sizeof much / sizeof much[0]; i++) {
        ck_assert_int_eq(take(much[i], 1, &piece), ERR_DEVICE_MEMORY);
        ck_assert(pool_reserve(pool, 1, much[i], NULL) == ERR_DEVICE_MEMORY);
        check();
    }
    for (unsigned i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        struct pool_account a;
        ck_assert_int_eq(take(odd[i], 1, &piece), 0);
        ck_assert_uint_ge(piece.size, odd[i]);
        check();
        give(&piece);
        pool_account(pool, 1, &a);
        ck_assert_uint_eq(a.meter.used, 0);
    }
    stop();
}
END_TEST

/* ---- a device that lies -----------------------------------------------------------------------*/

static uint64_t told;
static uint64_t state;

static uint64_t rnd(uint64_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % below;
}

static int budget(void *user, uint64_t *ret_free, struct err *e)
{
    (void)user;
    if (told == 1 && rnd(3) == 0) {
        return err_set(e, ERR_INTERNAL, "no answer");
    }
    *ret_free = told == 1 ? rnd(UINT64_C(1) << rnd(48)) : told;
    return 0;
}

/* Free memory of nothing, of all that there can be, or of a random number; the device has less than
 * the limit at times. */
START_TEST(a_device_may_lie_about_its_memory)
{
    static const uint64_t tells[] = {0, UINT64_MAX, 1};
    static struct pool_piece piece[PAGES];
    const bool pages = _i < 3;
    uint64_t now = SECOND;
    uint64_t used = 0;
    unsigned count = 0;
    unsigned refused = 0;
    told = tells[_i % 3];
    state = (uint64_t)_i + 1;
    start(pages, PAGES * FAKE_PAGE);
    source.source.budget = budget;
    pool_destroy(pool);
    const struct pool_options o = {
        .limit = PAGES * FAKE_PAGE, .streams = 2, .trim_age_ns = SECOND / 10};
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, NULL), 0);
    for (unsigned n = 0; n < 3000; n++) {
        source.capacity = n % 1000 < 500 ? PAGES * FAKE_PAGE : PAGES / 2 * FAKE_PAGE;
        if (count < PAGES && rnd(5) < 3) {
            int rc = take(1 + rnd(6 * MIB), 1 + (unsigned)rnd(3), &piece[count]);
            ck_assert(rc == 0 || rc == ERR_DEVICE_MEMORY);
            used += rc == 0 ? piece[count].size : 0;
            count += rc == 0;
            refused += rc != 0;
        } else if (count > 0) {
            unsigned i = (unsigned)rnd(count);
            used -= piece[i].size;
            give(&piece[i]);
            piece[i] = piece[--count];
        }
        (void)pool_tick(pool, now += rnd(SECOND / 20));
        if (n % 50 == 0) {
            struct pool_stats s;
            check();
            pool_stats(pool, &s);
            ck_assert_uint_eq(s.used, used);
            ck_assert_uint_eq(s.live, count);
        }
    }
    while (count > 0) {
        give(&piece[--count]);
    }
    ck_assert_uint_gt(refused, 0);
    source.capacity = PAGES * FAKE_PAGE;
    ck_assert_int_eq(take(PAGES * FAKE_PAGE, 1, &piece[0]), 0); /* nothing was lost */
    give(&piece[0]);
    stop();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("odd requests");
    TCase *t = tcase_create("odd");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, no_guarantee_exceeds_the_device, 0, 2);
    tcase_add_loop_test(t, guarantees_may_take_the_whole_device, 0, 2);
    tcase_add_loop_test(t, a_loop_of_one_page_starves_nobody, 0, 2);
    tcase_add_loop_test(t, a_piece_of_one_page_lies_anywhere, 0, 4);
    tcase_add_loop_test(t, odd_sizes_have_answers, 0, 4);
    tcase_add_loop_test(t, a_device_may_lie_about_its_memory, 0, 6);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
