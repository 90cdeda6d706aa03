/*
 * Each call of the source, and of the owner that moves pieces, fails once: a script runs as often
 * as it makes such calls. After every step the pool's own check holds and pieces lie in existing
 * memory; at the end all memory was given back.
 */
#include <check.h>
#include <stdlib.h>

#include "daemon/pool/clean.h"
#include "daemon/pool/lease.h"
#include "daemon/pool/move.h"
#include "daemon/pool/place.h"
#include "daemon/pool/quota.h"
#include "tests/unit/pool/fake_source.h"

#define KIB    UINT64_C(1024)
#define MIB    (KIB * KIB)
#define PAGE   (64 * KIB)
#define LIMIT  (4 * MIB)
#define PIECES 24u
#define ROUNDS 3u
#define BLOCKS 65536u /* as many as usual take most of the time of a pool that is made often */

static struct fake_source source;
static struct pool *pool;
static struct err err;
static struct pool_piece piece[PIECES]; /* by tag - 1 */
static uint64_t moves;
static bool moves_fail; /* counted among the source's calls */

static void check(void)
{
    ck_assert_msg(pool_check(pool, &err) == 0, "call %llu: %s", (unsigned long long)source.fail_at,
                  err.text);
}

static int move(void *user, struct pool_move *m, struct err *e)
{
    (void)user;
    if (moves_fail && ++source.calls == source.fail_at) {
        return err_set(e, ERR_DEVICE_MEMORY, "the copy is not enqueued");
    }
    ck_assert(fake_usable(&source, m->to));
    m->stream = 1;
    m->seq = ++moves;
    pool_piece_moved(&piece[m->tag - 1], m);
    return 0;
}

static void take(unsigned i, uint64_t size, unsigned stream)
{
    const struct pool_ask ask = {
        .size = size, .stream = stream, .tenant = i % 3, .tag = i % 4 != 0 ? i + UINT64_C(1) : 0};
    if (piece[i].range == NULL && pool_alloc(pool, &ask, &piece[i], NULL) == 0) {
        ck_assert(fake_usable(&source, &piece[i]));
    }
    check();
}

static void give(unsigned i, unsigned stream, uint64_t seq)
{
    ck_assert_int_eq(pool_free(pool, &piece[i], stream, seq, &err), 0);
    check();
}

/* Two pieces of whole pages take turns; other pieces need the memory that they leave. */
static void turns(uint64_t number)
{
    struct pool_piece two[2] = {{.range = NULL}, {.range = NULL}};
    struct pool_place place[2] = {{.size = 0}, {.size = 0}};
    for (unsigned n = 0; n < 3; n++) {
        const struct pool_ask ask = {.size = (20 + n % 2 * 20) * PAGE,
                                     .stream = n % 3 == 0,
                                     .tenant = n % 2,
                                     .place = &place[n % 2]};
        if (pool_alloc(pool, &ask, &two[n % 2], NULL) == 0) {
            ck_assert(fake_usable(&source, &two[n % 2]));
            check();
            (void)pool_vacate(pool, &two[n % 2], 0, number, &place[n % 2], NULL);
        }
        check();
        take(23, 50 * PAGE, n % 2);
        give(23, 0, 0);
    }
    pool_advance(pool, 0, number);
    pool_place_leave(pool, &place[0]);
    check();
    pool_place_leave(pool, &place[1]);
    check();
}

/* Small pieces remain while large ones come and go, more of them than there is memory for. */
static void round_of(uint64_t number)
{
    for (unsigned i = 0; i < 6; i++) {
        take(i, (100 + i * 37) * KIB, 0);
    }
    for (unsigned i = 6; i < 14; i++) {
        take(i, (150 + i * 61) * KIB, 0);
        if (i >= 9) {
            give(i - 3, 0, 0);
        }
    }
    for (unsigned i = 14; i < PIECES; i++) {
        take(i, i % 2 == 0 ? 70 * KIB : 9 * KIB, i % 2);
    }
    for (unsigned i = 0; i < PIECES; i += 2) {
        give(i, 0, number);
    }
    take(0, 2 * MIB, 1); /* has to wait, or pieces have to move */
    pool_advance(pool, 0, number);
    pool_advance(pool, 1, moves);
    take(2, 2 * MIB + 300 * KIB, 0);
    (void)pool_defragment(pool, MIB, NULL);
    check();
    if (number == 1) { /* only here: the script is repeated for every call */
        turns(number);
    }
    for (unsigned i = 0; i < PIECES; i++) {
        give(i, 0, 0);
    }
}

static void others(void)
{
    struct pool_piece unclean;
    if (pool_unclean(pool, MIB, &unclean)) {
        pool_cleared(pool, &unclean, true, 0, 0);
    }
    (void)pool_trim(pool, MIB);
    check();
    (void)pool_warm(pool, 3 * MIB, NULL);
    check();
    pool_set_limit(pool, LIMIT / 2);
    check();
    pool_set_limit(pool, LIMIT);
    ck_assert_int_eq(pool_lease_set(pool, LIMIT / 4, 10, &err), 0);
    (void)pool_lease_tick(pool, PAGE, 1);
    check();
    (void)pool_lease_tick(pool, LIMIT, 10);
    check();
    ck_assert_int_eq(pool_lease_set(pool, LIMIT, 0, &err), 0);
}

struct kind {
    bool pages, moving;
    uint64_t address; /* bytes; 0: as usual */
};

static const struct kind kinds[] = {
    {false, false, 0},      {false, true, 0},        {true, false, 0}, {true, false, 64 * MIB},
    {true, true, 64 * MIB}, {true, true, 3 * LIMIT}, /* few enough addresses to be used up */
};

/* Returns the number of calls; call number `fail` fails. */
static uint64_t run(const struct kind *kind, uint64_t fail, int code)
{
    const struct pool_options o = {.limit = LIMIT,
                                   .address_bytes = kind->address,
                                   .max_blocks = BLOCKS,
                                   .streams = 2,
                                   .events = 64};
    const struct pool_mover mover = {.move = move};
    (kind->pages ? fake_pages_init : fake_blocks_init)(&source, LIMIT);
    source.pages.page_bytes = PAGE;
    source.blocks.chunk = 256 * KIB;
    source.fail_at = fail;
    source.fail_code = code;
    moves = 0;
    moves_fail = kind->moving;
    pool = NULL;
    uint64_t calls = 0;
    if (pool_create(&source.source, &o, &pool, NULL) == 0) {
        pool_set_mover(pool, kind->moving ? &mover : NULL);
        for (uint64_t n = 1; n <= ROUNDS; n++) {
            round_of(n);
        }
        others();
        struct pool_stats s;
        pool_stats(pool, &s);
        ck_assert_uint_eq(s.used, 0);
        ck_assert_uint_eq(s.live, 0);
        calls = source.calls;
        source.fail_at = 0; /* a page that was not unmapped at the end remains with the device */
        pool_destroy(pool);
    }
    fake_finish(&source); /* no page remains */
    return calls;
}

START_TEST(each_call_fails_once)
{
    const struct kind *kind = &kinds[_i];
    uint64_t calls = run(kind, 0, ERR_INTERNAL);
    ck_assert_uint_gt(calls, 20);
    ck_assert(!kind->moving || moves > 0);
    for (uint64_t fail = 1; fail <= calls; fail++) {
        (void)run(kind, fail, fail % 2 == 0 ? ERR_DEVICE_MEMORY : ERR_INTERNAL);
    }
}
END_TEST

START_TEST(what_stays_mapped_at_the_end_is_not_released)
{
    const struct pool_options o = {.limit = LIMIT, .streams = 1};
    fake_pages_init(&source, LIMIT);
    source.pages.page_bytes = PAGE;
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, &err), 0);
    take(0, 3 * PAGE, 0);
    give(0, 0, 0);
    source.fail_at = source.calls + 1;
    pool_destroy(pool);
    ck_assert(source.reserved);
    ck_assert_uint_eq(source.taken, PAGE);
    source.taken = 0;
    source.reserved = false;
    fake_finish(&source);
}
END_TEST

/* Fewer addresses than wanted suffice, down to twice the limit. */
START_TEST(fewer_addresses_will_do)
{
    static const unsigned most[] = {32, 31, 16, 8, 3, 2};
    static const unsigned got[] = {32, 16, 16, 8, 2, 2};
    const struct pool_options o = {.limit = UINT64_C(1) << 30, .streams = 1};
    fake_pages_init(&source, o.limit);
    source.space_most = most[_i] * o.limit;
    ck_assert_msg(pool_create(&source.source, &o, &pool, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(source.space, got[_i] * o.limit);
    take(0, o.limit, 0);
    ck_assert_int_eq(pool_check(pool, &err), 0);
    give(0, 0, 0);
    pool_destroy(pool);
    fake_finish(&source);
}
END_TEST

START_TEST(too_few_addresses_will_not)
{
    struct pool_options o = {.limit = UINT64_C(1) << 30, .streams = 1};
    fake_pages_init(&source, o.limit);
    source.space_most = 2 * o.limit - 1;
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, &err), ERR_NOMEM);
    ck_assert_ptr_nonnull(strstr(err.text, "34359738368 bytes")); /* the size wanted first */
    source.space_most = 16 * o.limit;
    o.address_bytes = 32 * o.limit; /* an explicit size is not reduced */
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, &err), ERR_NOMEM);
    fake_finish(&source);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("the pool over a source that fails");
    TCase *t = tcase_create("faults");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, each_call_fails_once, 0, sizeof kinds / sizeof kinds[0]);
    tcase_add_test(t, what_stays_mapped_at_the_end_is_not_released);
    tcase_add_loop_test(t, fewer_addresses_will_do, 0, 6);
    tcase_add_test(t, too_few_addresses_will_not);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
