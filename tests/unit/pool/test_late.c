/*
 * The pool over a source that makes its calls later: what pieces wait for, and what becomes of
 * memory whose call failed.
 */
#include <check.h>
#include <stdlib.h>

#include "daemon/pool/place.h"
#include "daemon/pool/pool_int.h"
#include "daemon/pool/pressure.h"
#include "tests/unit/pool/late_source.h"

#define PAGE    (UINT64_C(64) << 10)
#define LIMIT   (64 * PAGE)
#define PIECES  48u
#define STREAMS 3u
#define STEPS   3000u

static struct late_source source;
static struct pool *pool;
static struct err err;

static void start_with(uint64_t capacity, uint64_t handle_max)
{
    const struct pool_options o = {.limit = LIMIT, .address_bytes = 16 * LIMIT, .streams = STREAMS};
    late_init(&source, capacity, PAGE, handle_max);
    ck_assert_msg(pool_create(&source.source, &o, &pool, &err) == 0, "%s", err.text);
    source.pool = pool;
}

static void start(uint64_t capacity)
{
    start_with(capacity, PAGE);
}

static void stop(void)
{
    source.pool = NULL;
    pool_destroy(pool);
    late_finish(&source);
}

static void check(void)
{
    ck_assert_msg(pool_check(pool, &err) == 0, "%s", err.text);
}

static int take_for(struct pool_piece *piece, uint64_t bytes, unsigned stream, unsigned tenant)
{
    const struct pool_ask ask = {.size = bytes, .stream = stream, .tenant = tenant};
    return pool_alloc(pool, &ask, piece, &err);
}

static struct pool_piece taken(uint64_t bytes)
{
    struct pool_piece piece;
    ck_assert_msg(take_for(&piece, bytes, 0, 1) == 0, "%s", err.text);
    return piece;
}

static void give(struct pool_piece *piece)
{
    ck_assert_int_eq(pool_free(pool, piece, 0, 0, &err), 0);
    check();
}

static uint64_t size_now(void)
{
    struct pool_stats s;
    pool_stats(pool, &s);
    return s.size;
}

/* ---- tickets --------------------------------------------------------------------------------- */

START_TEST(a_piece_waits_for_its_own_calls)
{
    start(LIMIT);
    struct pool_piece a = taken(4 * PAGE);
    uint64_t first = source.issued;
    struct pool_piece b = taken(4 * PAGE);
    ck_assert_uint_eq(a.ticket, first);
    ck_assert_uint_gt(b.ticket, first);
    ck_assert_int_eq(pool_piece_late(pool, &a), POOL_WAITS);
    late_run(&source, first);
    ck_assert_int_eq(pool_piece_late(pool, &a), POOL_READY);
    ck_assert(fake_usable(&source.fake, &a));
    ck_assert_uint_eq(a.ticket, 0);
    ck_assert_int_eq(pool_piece_late(pool, &b), POOL_WAITS);
    late_run_all(&source);
    ck_assert_int_eq(pool_piece_late(pool, &b), POOL_READY);
    ck_assert(!pool_outstanding(pool));
    give(&a);
    a = taken(4 * PAGE);
    ck_assert_uint_eq(a.ticket, 0); /* it is mapped already */
    give(&a);
    give(&b);
    stop();
}
END_TEST

/* Memory that was freed before it was mapped keeps its next user waiting, too. */
START_TEST(reused_memory_waits_as_before)
{
    start(LIMIT);
    struct pool_piece a = taken(4 * PAGE);
    give(&a);
    uint64_t calls = source.issued;
    struct pool_piece b = taken(4 * PAGE);
    ck_assert_uint_eq(source.issued, calls);
    ck_assert_uint_eq(b.ticket, calls);
    struct pool_piece small = taken(256);
    ck_assert_uint_ne(small.ticket, 0);
    late_run_all(&source);
    ck_assert_int_eq(pool_piece_late(pool, &small), POOL_READY);
    ck_assert(fake_usable(&source.fake, &small));
    give(&b);
    give(&small);
    stop();
}
END_TEST

/* ---- failures -------------------------------------------------------------------------------- */

static uint64_t fail_at;
static enum late_kind fail_kind;

static bool fails_at(const struct late_call *call, uint64_t number)
{
    (void)call;
    return number == fail_at;
}

static bool fails_kind(const struct late_call *call, uint64_t number)
{
    return call->kind == fail_kind && number >= fail_at;
}

START_TEST(a_full_device_refuses_until_the_next_tick)
{
    start(8 * PAGE);
    struct pool_piece a = taken(12 * PAGE);
    late_run_all(&source);
    ck_assert_int_eq(pool_piece_late(pool, &a), POOL_FAILED);
    give(&a);
    ck_assert_uint_eq(size_now(), 8 * PAGE); /* what it gave remains */
    struct pool_piece b;
    uint64_t calls = source.issued;
    ck_assert_int_eq(take_for(&b, 12 * PAGE, 0, 1), ERR_DEVICE_MEMORY);
    ck_assert_uint_eq(source.issued, calls); /* and no page moves in vain */
    ck_assert_int_eq(take_for(&b, 8 * PAGE, 0, 1), 0);
    late_run_all(&source);
    ck_assert_int_ne(pool_piece_late(pool, &b), POOL_FAILED);
    ck_assert(fake_usable(&source.fake, &b));
    give(&b);
    ck_assert_uint_le(source.issued - calls, 20); /* moved, at most: none was made */
    (void)pool_tick(pool, 1);
    ck_assert_int_eq(take_for(&b, 12 * PAGE, 0, 1), 0); /* it is asked again */
    late_run_all(&source);
    ck_assert_int_eq(pool_piece_late(pool, &b), POOL_FAILED);
    give(&b);
    stop();
}
END_TEST

/* The pieces of a failed page go one by one, and its last one takes it along. */
START_TEST(a_failed_page_goes_with_its_last_piece)
{
    start(LIMIT);
    struct pool_piece a = taken(PAGE + PAGE / 2);
    struct pool_piece b = taken(PAGE / 2 + 4096); /* in the rest of the second page, and beyond */
    fail_at = 1;
    fail_kind = LATE_ACCESS;
    source.fails = fails_kind;
    late_run_all(&source);
    source.fails = NULL;
    ck_assert_int_eq(pool_piece_late(pool, &a), POOL_FAILED);
    ck_assert_int_eq(pool_piece_late(pool, &b), POOL_FAILED);
    uint64_t before = size_now();
    give(&a);
    ck_assert_uint_lt(size_now(), before);
    give(&b);
    ck_assert_uint_eq(size_now(), 0);
    (void)pool_tick(pool, 1);
    a = taken(PAGE);
    late_run_all(&source);
    ck_assert_int_eq(pool_piece_late(pool, &a), POOL_READY);
    give(&a);
    stop();
}
END_TEST

/* Free memory that failed goes at once; nobody gets it. */
START_TEST(free_memory_that_failed_goes)
{
    start(LIMIT);
    struct pool_piece a = taken(4 * PAGE);
    struct pool_piece small = taken(512);
    give(&a);
    fail_at = 1;
    fail_kind = LATE_MAP;
    source.fails = fails_kind;
    late_run_all(&source);
    source.fails = NULL;
    check();
    ck_assert_uint_le(size_now(), 4 * PAGE); /* the slab's */
    ck_assert_int_eq(pool_piece_late(pool, &small), POOL_FAILED);
    struct pool_piece other;
    (void)pool_tick(pool, 1);
    ck_assert_int_eq(take_for(&other, 512, 0, 1), 0);
    late_run_all(&source);
    ck_assert_int_eq(pool_piece_late(pool, &other), POOL_READY); /* not of the failed slab */
    ck_assert(fake_usable(&source.fake, &other));
    give(&small);
    give(&other);
    (void)pool_trim(pool, 0);
    ck_assert_uint_eq(size_now(), 0);
    stop();
}
END_TEST

/* Where an unmap failed nothing can be mapped: the addresses are given up with the memory. */
START_TEST(memory_that_cannot_be_unmapped_is_lost)
{
    start(LIMIT);
    struct pool_piece a = taken(2 * PAGE);
    late_run_all(&source);
    give(&a);
    fail_at = 1;
    fail_kind = LATE_UNMAP;
    source.fails = fails_kind;
    (void)pool_trim(pool, 0);
    late_run_all(&source);
    source.fails = NULL;
    ck_assert_uint_eq(source.failures, 2);
    for (unsigned n = 0; n < 8; n++) {
        (void)pool_tick(pool, n + 1);
        a = taken(2 * PAGE);
        late_run_all(&source);
        bool failed = pool_piece_late(pool, &a) == POOL_FAILED;
        ck_assert(failed || fake_usable(&source.fake, &a));
        ck_assert(n == 0 || !failed); /* each address is tried once */
        give(&a);
    }
    ck_assert_int_eq(take_for(&a, LIMIT, 0, 1), ERR_DEVICE_MEMORY); /* two pages fewer */
    source.pool = NULL;
    pool_destroy(pool);
    source.fake.taken = 0; /* what is lost is lost */
    source.fake.reserved = false;
    late_finish(&source);
}
END_TEST

static bool never(void)
{
    return false;
}

/* Pages that were not cleared after all: their pieces are found foreign when they are ready, those
 * that come later at once. */
START_TEST(memory_that_was_not_cleared_is_foreign)
{
    start(LIMIT);
    struct pool_piece a = taken(512);
    ck_assert(!a.foreign);
    source.clears = never;
    late_run_all(&source);
    ck_assert_int_eq(pool_piece_late(pool, &a), POOL_READY);
    ck_assert(a.foreign);
    struct pool_piece b = taken(512);
    ck_assert(b.foreign);
    struct pool_piece large = taken(PAGE + 512);
    late_run_all(&source);
    ck_assert_int_eq(pool_piece_late(pool, &large), POOL_READY);
    ck_assert(large.foreign);
    give(&a);
    give(&b);
    give(&large);
    stop();
}
END_TEST

/* Every call of a load fails once: pieces fail or are usable, and everything goes back. */
START_TEST(each_call_may_fail)
{
    uint64_t last = 1;
    source.fails = NULL;
    for (fail_at = 1; fail_at <= last; fail_at++) {
        struct pool_piece piece[6];
        static const uint64_t sizes[6] = {3 * PAGE, 512, PAGE / 2 + 256, 6 * PAGE, 8192, 2 * PAGE};
        start(LIMIT);
        source.fails = fails_at;
        for (unsigned i = 0; i < 6; i++) {
            piece[i] = taken(sizes[i]);
        }
        give(&piece[0]);
        piece[0] = taken(5 * PAGE);
        last = source.issued;
        late_run_all(&source);
        bool failed = false;
        for (unsigned i = 0; i < 6; i++) {
            bool bad = pool_piece_late(pool, &piece[i]) == POOL_FAILED;
            ck_assert(bad || fake_usable(&source.fake, &piece[i]));
            failed = failed || bad;
        }
        ck_assert(!failed || source.failures > 0);
        for (unsigned i = 0; i < 6; i++) {
            give(&piece[i]);
        }
        (void)pool_trim(pool, 0);
        late_run_all(&source);
        check();
        ck_assert_uint_eq(size_now(), 0);
        stop();
    }
    ck_assert_uint_gt(last, 20);
}
END_TEST

/* ---- at random ------------------------------------------------------------------------------- */

static unsigned seed;

static unsigned dice(unsigned sides)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 16 & 0x7fffu) % sides;
}

static bool fails_at_times(const struct late_call *call, uint64_t number)
{
    (void)number;
    return call->kind != LATE_UNMAP && call->kind != LATE_DESTROY && dice(40) == 0;
}

static bool at_times(void)
{
    return dice(2) == 0;
}

static struct pool_piece pieces[PIECES];
static struct pool_place places[PIECES];
static uint64_t points[STREAMS];

static void free_one(unsigned i)
{
    unsigned stream = dice(STREAMS);
    bool used = pieces[i].ticket == 0;
    bool keeps = used && dice(3) == 0;
    uint64_t seq = used ? ++points[stream] : 0;
    pool_place_leave(pool, &places[i]);
    int rc = keeps ? pool_vacate(pool, &pieces[i], stream, seq, &places[i], &err)
                   : pool_free(pool, &pieces[i], stream, seq, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
}

static void take_one(unsigned i)
{
    static const uint64_t sizes[] = {256, 3000, PAGE, PAGE + 512, 3 * PAGE, 7 * PAGE, 20 * PAGE};
    bool back = places[i].size > 0;
    const struct pool_ask ask = {.size = back ? places[i].size : sizes[dice(7)],
                                 .stream = dice(STREAMS),
                                 .tenant = dice(3),
                                 .place = back ? &places[i] : NULL};
    if (pool_alloc(pool, &ask, &pieces[i], &err) == 0 && back) {
        places[i] = (struct pool_place){.size = 0};
    }
}

static void ask_all(void)
{
    for (unsigned i = 0; i < PIECES; i++) {
        if (pieces[i].range == NULL) {
            continue;
        }
        enum pool_late late = pool_piece_late(pool, &pieces[i]);
        ck_assert(late != POOL_READY || fake_usable(&source.fake, &pieces[i]));
        if (late == POOL_FAILED && dice(2) == 0) {
            free_one(i);
        }
    }
}

static void step(unsigned n)
{
    unsigned i = dice(PIECES);
    switch (dice(8)) {
    case 0:
    case 1:
    case 2:
        if (pieces[i].range != NULL) {
            free_one(i);
        } else {
            take_one(i);
        }
        break;
    case 3:
    case 4:
        late_run(&source, dice(20));
        break;
    case 5:
        pool_advance(pool, i % STREAMS, points[i % STREAMS]);
        break;
    case 6:
        (void)(dice(10) == 0 ? pool_trim(pool, 4 * PAGE) : pool_tick(pool, n * UINT64_C(1000000)));
        break;
    default:
        ask_all();
        break;
    }
    check();
}

static void play(unsigned number, uint64_t capacity)
{
    seed = number;
    start_with(capacity, number % 2 == 0 ? PAGE : 4 * PAGE); /* 1/16 of the limit */
    source.fails = number % 4 == 0 ? NULL : fails_at_times;
    source.clears = at_times;
    for (unsigned n = 0; n < STEPS; n++) {
        step(n);
    }
    late_run_all(&source);
    ck_assert((source.failures > 0) == (source.fails != NULL || capacity < LIMIT));
    source.fails = NULL;
    source.clears = NULL;
    for (unsigned i = 0; i < PIECES; i++) {
        pool_place_leave(pool, &places[i]);
        ck_assert_int_eq(pool_free(pool, &pieces[i], 0, 0, &err), 0);
    }
    for (unsigned s = 0; s < STREAMS; s++) {
        pool_advance(pool, s, points[s]);
        points[s] = 0;
    }
    (void)pool_tick(pool, UINT64_C(1) << 40);
    (void)pool_trim(pool, 0);
    late_run_all(&source);
    check();
    ck_assert_uint_eq(size_now(), 0);
    ck_assert_uint_eq(pool->late.failed, 0);
    stop();
}

START_TEST(any_order_of_calls_and_failures)
{
    play((unsigned)_i, LIMIT);
    play((unsigned)_i + 1000, 24 * PAGE); /* the device has less than the pool believes */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pool_late");
    TCase *tickets = tcase_create("tickets");
    TCase *failures = tcase_create("failures");
    TCase *random = tcase_create("random");
    tcase_add_test(tickets, a_piece_waits_for_its_own_calls);
    tcase_add_test(tickets, reused_memory_waits_as_before);
    tcase_add_test(failures, a_full_device_refuses_until_the_next_tick);
    tcase_add_test(failures, a_failed_page_goes_with_its_last_piece);
    tcase_add_test(failures, free_memory_that_failed_goes);
    tcase_add_test(failures, memory_that_cannot_be_unmapped_is_lost);
    tcase_add_test(failures, memory_that_was_not_cleared_is_foreign);
    tcase_add_test(failures, each_call_may_fail);
    tcase_add_loop_test(random, any_order_of_calls_and_failures, 0, 40);
    tcase_set_timeout(failures, 120);
    tcase_set_timeout(random, 120);
    suite_add_tcase(suite, tickets);
    suite_add_tcase(suite, failures);
    suite_add_tcase(suite, random);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
