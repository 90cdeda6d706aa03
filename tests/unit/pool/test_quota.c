/* Tenants' accounts, reservations, pressure, trimming by age, and the remedies of refusals. */
#include <check.h>
#include <string.h>

#include "daemon/pool/class.h"
#include "daemon/pool/move.h"
#include "daemon/pool/pressure.h"
#include "daemon/pool/quota.h"
#include "tests/unit/pool/fake_source.h"

#define KIB    UINT64_C(1024)
#define MIB    (KIB * KIB)
#define SECOND UINT64_C(1000000000)

static struct fake_source source;
static struct pool *pool;
static struct err err;

static void start_with(bool pages, const struct pool_options *o)
{
    (pages ? fake_pages_init : fake_blocks_init)(&source, UINT64_C(1) << 36);
    ck_assert_msg(pool_create(&source.source, o, &pool, &err) == 0, "%s", err.text);
}

static void start(bool pages, uint64_t limit)
{
    struct pool_options o = {.limit = limit, .streams = 3};
    start_with(pages, &o);
}

static void stop(void)
{
    ck_assert_msg(pool_check(pool, &err) == 0, "%s", err.text);
    pool_destroy(pool);
    fake_finish(&source);
}

static int take(uint64_t size, unsigned tenant, bool reserved, struct pool_piece *ret)
{
    struct pool_ask ask = {.size = size, .tenant = tenant, .reserved = reserved};
    err = ERR_INIT;
    int rc = pool_alloc(pool, &ask, ret, &err);
    struct err e = ERR_INIT;
    ck_assert_msg(pool_check(pool, &e) == 0, "%s", e.text);
    return rc;
}

static void give(struct pool_piece *piece, unsigned stream, uint64_t seq)
{
    ck_assert_int_eq(pool_free(pool, piece, stream, seq, &err), 0);
    struct err e = ERR_INIT;
    ck_assert_msg(pool_check(pool, &e) == 0, "%s", e.text);
}

static void set(unsigned tenant, uint64_t hard, uint64_t soft, uint64_t guaranteed)
{
    const struct pool_quota q = {hard, soft, guaranteed};
    ck_assert_int_eq(pool_set_quota(pool, tenant, &q, &err), 0);
}

static struct pool_account account(unsigned tenant)
{
    struct pool_account a;
    pool_account(pool, tenant, &a);
    return a;
}

static struct pool_refusal refusal(void)
{
    struct pool_refusal r;
    pool_refusal(pool, &r);
    return r;
}

/* ---- accounts ---------------------------------------------------------------------------------*/

START_TEST(a_tenant_is_charged_what_it_keeps_from_others)
{
    struct pool_piece a;
    struct pool_piece b;
    start(_i == 0, 64 * MIB);
    ck_assert_int_eq(take(3 * MIB, 1, false, &a), 0);
    ck_assert_uint_eq(account(1).mapped, 3 * MIB);
    ck_assert_int_eq(take(1000, 1, false, &b), 0);
    ck_assert_uint_eq(account(1).meter.used, 3 * MIB + KIB);
    ck_assert_uint_eq(account(1).meter.asked, 3 * MIB + 1000);
    ck_assert_uint_eq(account(1).mapped, 3 * MIB + 64 * KIB); /* the whole slab is charged */
    give(&a, 0, 0);
    give(&b, 0, 0);
    ck_assert_uint_eq(account(1).mapped, 64 * KIB); /* the slab remains */
    stop();
}
END_TEST

START_TEST(who_takes_from_a_slab_last_is_charged_for_its_slack)
{
    struct pool_piece a;
    struct pool_piece b;
    start(true, 64 * MIB);
    ck_assert_int_eq(take(KIB, 1, false, &a), 0);
    ck_assert_int_eq(take(KIB, 2, false, &b), 0);
    ck_assert_uint_eq(account(1).mapped, KIB);
    ck_assert_uint_eq(account(2).mapped, 63 * KIB);
    give(&a, 0, 0);
    ck_assert_uint_eq(account(1).mapped, 0);
    ck_assert_uint_eq(account(2).mapped, 64 * KIB);
    give(&b, 0, 0);
    stop();
}
END_TEST

START_TEST(the_hard_limit_counts_slabs_and_a_small_piece_fits_below_it)
{
    struct pool_piece a;
    struct pool_piece b;
    start(true, 64 * MIB);
    set(1, 100 * KIB, UINT64_MAX, 0);
    ck_assert_int_eq(take(80 * KIB, 1, false, &a), 0);
    ck_assert_int_eq(take(1000, 1, false, &b), 0); /* a slab would exceed the limit */
    ck_assert_uint_eq(account(1).mapped, 81 * KIB);
    give(&b, 0, 0);
    ck_assert_int_eq(take(21 * KIB, 1, false, &b), ERR_LIMIT);
    ck_assert_int_eq(refusal().code, ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.text, "tenant 1"));
    give(&a, 0, 0);
    stop();
}
END_TEST

START_TEST(what_is_guaranteed_others_cannot_take)
{
    struct pool_piece a;
    struct pool_piece b;
    struct pool_piece c;
    start(_i == 0, 64 * MIB);
    set(1, UINT64_MAX, UINT64_MAX, 24 * MIB);
    ck_assert_int_eq(take(40 * MIB, 2, false, &a), 0);
    ck_assert_int_eq(take(2 * MIB, 2, false, &b), ERR_DEVICE_MEMORY);
    ck_assert_ptr_nonnull(strstr(err.text, "kept for other tenants"));
    ck_assert_int_eq(take(100, 3, false, &b), ERR_DEVICE_MEMORY);
    ck_assert_int_eq(take(8 * MIB, 1, false, &b), 0);
    ck_assert_int_eq(take(16 * MIB, 1, false, &c), 0);
    give(&b, 0, 0);
    give(&c, 0, 0);
    ck_assert_int_eq(take(2 * MIB, 2, false, &b), ERR_DEVICE_MEMORY); /* guaranteed again */
    set(1, UINT64_MAX, UINT64_MAX, 0);
    ck_assert_int_eq(take(2 * MIB, 2, false, &b), 0);
    give(&a, 0, 0);
    give(&b, 0, 0);
    stop();
}
END_TEST

/* Small pieces spread over all pages would leave free bytes, but no free pages. */
START_TEST(what_is_guaranteed_is_kept_in_pages)
{
    struct pool_piece piece[64];
    struct pool_piece mine;
    unsigned n = 0;
    start(true, 64 * MIB);
    set(1, UINT64_MAX, UINT64_MAX, 32 * MIB);
    while (n < 64 && take(1200 * KIB, 2, false, &piece[n]) == 0) {
        n++;
    }
    ck_assert_uint_gt(n, 10);
    ck_assert_int_eq(take(32 * MIB, 1, false, &mine), 0);
    give(&mine, 0, 0);
    while (n > 0) {
        give(&piece[--n], 0, 0);
    }
    stop();
}
END_TEST

/* The closest fit for the guarantee begins and ends in the middle of a page. */
START_TEST(what_is_guaranteed_shares_no_page)
{
    struct pool_piece other[20];
    struct pool_piece gap;
    struct pool_piece whole;
    struct pool_piece half[2];
    unsigned n = 2;
    start(true, 16 * FAKE_PAGE);
    ck_assert_int_eq(take(MIB, 2, false, &other[0]), 0);
    ck_assert_int_eq(take(4 * FAKE_PAGE + 256, 2, false, &gap), 0);
    ck_assert_int_eq(take(MIB - 256, 2, false, &other[1]), 0);
    ck_assert_uint_eq(other[1].offset, gap.offset + gap.size);
    give(&gap, 0, 0);
    set(1, UINT64_MAX, UINT64_MAX, 4 * FAKE_PAGE);
    ck_assert_int_eq(take(4 * FAKE_PAGE, 1, false, &whole), 0);
    while (n < 20 && take(FAKE_PAGE, 2, false, &other[n]) == 0) {
        n++;
    }
    give(&whole, 0, 0);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_msg(take(2 * FAKE_PAGE, 1, false, &half[i]) == 0, "%s", err.text);
    }
    give(&half[0], 0, 0);
    give(&half[1], 0, 0);
    while (n > 0) {
        give(&other[--n], 0, 0);
    }
    stop();
}
END_TEST

START_TEST(what_is_reserved_is_charged_before_it_is_there)
{
    struct pool_piece a;
    struct pool_piece b;
    start(true, 64 * MIB);
    set(1, 50 * MIB, UINT64_MAX, 0);
    ck_assert_int_eq(pool_reserve(pool, 1, 51 * MIB, &err), ERR_LIMIT);
    ck_assert_int_eq(pool_reserve(pool, 1, 40 * MIB, &err), 0);
    ck_assert_int_eq(pool_reserve(pool, 2, 30 * MIB, &err), ERR_DEVICE_MEMORY);
    ck_assert_int_eq(pool_reserve(pool, 2, UINT64_MAX, &err), ERR_DEVICE_MEMORY);
    ck_assert_uint_eq(source.taken, 0);
    ck_assert_int_eq(take(30 * MIB, 2, false, &a), ERR_DEVICE_MEMORY);
    ck_assert_int_eq(take(24 * MIB, 2, false, &a), 0);
    ck_assert_int_eq(take(20 * MIB, 1, false, &b), ERR_LIMIT); /* 40 are charged */
    ck_assert_int_eq(take(30 * MIB, 1, true, &b), 0);
    ck_assert_uint_eq(account(1).reserved, 10 * MIB);
    pool_unreserve(pool, 1, UINT64_MAX);
    ck_assert_uint_eq(account(1).reserved, 0);
    give(&a, 0, 0);
    give(&b, 0, 0);
    stop();
}
END_TEST

static uint64_t held(void)
{
    struct pool_stats s;
    pool_stats(pool, &s);
    return s.size;
}

/* Memory beside the pool leaves so much less for the pool's pieces of the same tenant, too. */
START_TEST(what_a_tenant_has_reserved_its_pieces_do_not_get)
{
    struct pool_piece a;
    struct pool_piece b;
    start(_i == 0, 64 * MIB);
    ck_assert_int_eq(pool_reserve(pool, 1, 48 * MIB, &err), 0);
    ck_assert_int_eq(take(16 * MIB, 1, false, &a), 0);
    ck_assert_int_eq(take(2 * MIB, 1, false, &b), ERR_DEVICE_MEMORY);
    ck_assert_int_eq(take(100, 1, false, &b), ERR_DEVICE_MEMORY);
    ck_assert_int_eq(pool_reserve(pool, 1, 1, &err), ERR_DEVICE_MEMORY);
    ck_assert_uint_eq(pool_kept(pool, 1), 48 * MIB);
    ck_assert_uint_eq(source.taken, 16 * MIB);
    pool_unreserve(pool, 1, 2 * MIB);
    ck_assert_int_eq(take(2 * MIB, 1, false, &b), 0);
    pool_unreserve(pool, 1, 46 * MIB);
    ck_assert_uint_eq(pool_kept(pool, 1), 0);
    give(&a, 0, 0);
    give(&b, 0, 0);
    stop();
}
END_TEST

/* The reverse: the pool's free memory goes back where there is no room beside it. */
START_TEST(what_is_reserved_has_room_beside_the_pool)
{
    struct pool_piece a;
    struct pool_piece b;
    struct pool_piece c;
    start(_i == 0, 64 * MIB);
    ck_assert_int_eq(take(30 * MIB, 1, false, &a), 0);
    ck_assert_int_eq(take(24 * MIB, 1, false, &b), 0);
    ck_assert_int_eq(take(10 * MIB, 1, false, &c), 0);
    ck_assert_int_eq(pool_reserve(pool, 1, 1, &err), ERR_DEVICE_MEMORY);
    give(&b, 0, 0);
    ck_assert_uint_eq(held(), 64 * MIB);
    ck_assert_int_eq(pool_reserve(pool, 1, 20 * MIB, &err), 0);
    ck_assert_uint_le(held(), 44 * MIB);
    give(&a, 1, 10); /* a stream still uses it: new memory has no room until the stream advances */
    ck_assert_int_eq(pool_reserve(pool, 1, 32 * MIB, &err), 0);
    pool_advance(pool, 1, 10);
    give(&c, 0, 0);
    ck_assert_uint_le(held(), 12 * MIB);
    ck_assert_int_eq(take(12 * MIB, 1, false, &a), 0);
    ck_assert_int_eq(take(2 * MIB, 1, false, &b), ERR_DEVICE_MEMORY);
    ck_assert_int_eq(pool_warm(pool, UINT64_MAX, &err), _i == 0 ? ERR_UNSUPPORTED : 0);
    ck_assert_uint_le(held(), 12 * MIB);
    pool_unreserve(pool, 1, UINT64_MAX);
    give(&a, 0, 0);
    stop();
}
END_TEST

/* ---- free objects -----------------------------------------------------------------------------*/

#define OBJECTS 4096u /* of 16 KiB */

static struct pool_piece object[OBJECTS];

static int move(void *user, struct pool_move *m, struct err *e)
{
    (void)user;
    (void)e;
    pool_piece_moved(&object[m->tag - 1], m);
    return 0;
}

/* One of sixteen objects remains; some of the slabs also have an object of another tenant. */
static void thin_slabs(bool moves)
{
    const struct pool_mover mover = {.move = moves ? move : NULL};
    pool_set_mover(pool, &mover);
    set(1, 64 * MIB, UINT64_MAX, 0);
    for (unsigned i = 0; i < OBJECTS; i++) {
        const struct pool_ask ask = {
            .size = 16 * KIB, .tenant = i % 512 == 17 ? 2 : 1, .tag = i + 1};
        ck_assert_int_eq(pool_alloc(pool, &ask, &object[i], &err), 0);
    }
    for (unsigned i = 0; i < OBJECTS; i++) {
        if (i % 16 != 1) {
            ck_assert_int_eq(pool_free(pool, &object[i], 0, 0, &err), 0);
        }
    }
    ck_assert_uint_ge(account(1).mapped, 60 * MIB);
    ck_assert_uint_le(account(1).meter.used, 4 * MIB);
}

static void give_objects(void)
{
    for (unsigned i = 1; i < OBJECTS; i += 16) {
        ck_assert_int_eq(pool_free(pool, &object[i], 0, 0, &err), 0);
    }
}

START_TEST(free_objects_are_no_reason_for_a_refusal)
{
    struct pool_piece a;
    struct pool_piece b;
    start(_i == 0, 256 * MIB);
    thin_slabs(false);
    ck_assert_int_eq(take(8 * MIB, 1, false, &a), ERR_LIMIT); /* nothing may move */
    const struct pool_mover mover = {.move = move};
    pool_set_mover(pool, &mover);
    ck_assert_int_eq(take(8 * MIB, 1, false, &a), 0);
    ck_assert_uint_ge(account(1).mapped, 56 * MIB); /* no more moves than needed */
    ck_assert_int_eq(take(51 * MIB, 1, false, &b), 0);
    ck_assert_uint_le(account(1).mapped, 64 * MIB);
    struct pool_stats s;
    pool_stats(pool, &s);
    ck_assert_uint_le(s.moved, 4 * MIB); /* each object moves once at most */
    give(&b, 0, 0);
    ck_assert_int_eq(take(57 * MIB, 1, false, &b), ERR_LIMIT);
    give(&a, 0, 0);
    give_objects();
    stop();
}
END_TEST

START_TEST(free_objects_are_no_reason_not_to_reserve)
{
    struct pool_piece one;
    start(_i == 0, 64 * MIB);
    for (unsigned class = 0; class < POOL_CLASSES; class ++) {
        ck_assert_int_eq(take(class_bytes(class), 1, false, &one), 0);
        give(&one, 0, 0);
    }
    ck_assert_uint_ge(account(1).mapped, 8 * MIB);
    ck_assert_int_eq(pool_reserve(pool, 2, 60 * MIB, &err), 0);
    ck_assert_uint_eq(account(1).mapped, 0);
    pool_unreserve(pool, 2, 60 * MIB);
    stop();
    start(_i == 0, 256 * MIB);
    thin_slabs(true);
    ck_assert_int_eq(pool_reserve(pool, 1, 61 * MIB, &err), ERR_LIMIT);
    ck_assert_int_eq(pool_reserve(pool, 1, 59 * MIB, &err), 0);
    pool_unreserve(pool, 1, 59 * MIB);
    give_objects();
    stop();
}
END_TEST

START_TEST(what_is_no_quota_is_refused)
{
    const struct pool_quota odd = {.hard = 1, .soft = 1, .guaranteed = 2};
    const struct pool_quota most = {UINT64_MAX, UINT64_MAX, 40 * MIB};
    start(true, 64 * MIB);
    ck_assert_int_eq(pool_set_quota(pool, 1, &odd, &err), ERR_INVALID);
    ck_assert_int_eq(pool_set_quota(pool, POOL_TENANTS, &most, &err), ERR_INVALID);
    ck_assert_int_eq(pool_set_quota(pool, 1, &most, &err), 0);
    ck_assert_int_eq(pool_set_quota(pool, 1, &most, &err), 0); /* the same again */
    ck_assert_int_eq(pool_set_quota(pool, 2, &most, &err), ERR_LIMIT);
    ck_assert_int_eq(pool_reserve(pool, POOL_TENANTS, 1, &err), ERR_INVALID);
    ck_assert_uint_eq(account(POOL_TENANTS).mapped, 0);
    stop();
}
END_TEST

/* ---- refusals ---------------------------------------------------------------------------------*/

START_TEST(a_refusal_says_what_there_is)
{
    struct pool_piece a;
    struct pool_piece b;
    start(true, 64 * MIB);
    source.source.wait = NULL;
    pool_destroy(pool);
    struct pool_options o = {.limit = 64 * MIB, .streams = 3};
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, &err), 0);
    ck_assert_int_eq(refusal().code, 0);
    ck_assert_int_eq(take(65 * MIB, 4, false, &a), ERR_DEVICE_MEMORY);
    ck_assert_int_eq(refusal().code, ERR_DEVICE_MEMORY);
    ck_assert_int_eq(take(60 * MIB, 4, false, &a), 0);
    ck_assert_int_eq(take(8 * MIB, 5, false, &b), ERR_DEVICE_MEMORY);
    struct pool_refusal r = refusal();
    ck_assert_uint_eq(r.tenant, 5);
    ck_assert_uint_eq(r.wanted, 8 * MIB);
    ck_assert_uint_eq(r.largest_free, 4 * MIB);
    give(&a, 1, 10);
    ck_assert_int_eq(take(8 * MIB, 5, false, &b), ERR_DEVICE_MEMORY);
    r = refusal();
    ck_assert_uint_eq(r.pending, 60 * MIB);
    ck_assert_ptr_nonnull(strstr(err.text, "62914560 wait for streams"));
    pool_advance(pool, 1, 10);
    ck_assert_int_eq(take(8 * MIB, 5, false, &b), 0);
    give(&b, 0, 0);
    stop();
}
END_TEST

/* ---- trimming ---------------------------------------------------------------------------------*/

static uint64_t device_free;
static unsigned budget_asked;

static int budget(void *user, uint64_t *ret_free, struct err *e)
{
    (void)user;
    (void)e;
    budget_asked++;
    *ret_free = device_free;
    return 0;
}

/* Where the device has little left (_i 0), memory goes back after a quarter of its age. The device
 * is asked ten times a second at most. */
START_TEST(the_devices_budget_counts)
{
    struct pool_piece a;
    struct pool_options o = {.limit = 100 * MIB, .streams = 1, .trim_age_ns = 8 * SECOND};
    uint64_t now = 1000 * SECOND;
    uint64_t given = 0;
    fake_pages_init(&source, UINT64_C(1) << 36);
    source.source.budget = budget;
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, &err), 0);
    ck_assert_int_eq(take(40 * MIB, 0, false, &a), 0);
    give(&a, 0, 0);
    device_free = _i == 0 ? 4 * MIB : 6 * MIB;
    for (unsigned i = 0; i < 80; i++) {
        given += pool_tick(pool, now + i * SECOND / 20);
    }
    ck_assert_uint_eq(given, _i == 0 ? 40 * MIB : 0);
    ck_assert_uint_eq(budget_asked, 40);
    stop();
}
END_TEST

START_TEST(what_nobody_needed_for_a_while_goes_back)
{
    struct pool_piece a;
    struct pool_piece b;
    struct pool_options o = {
        .limit = 256 * MIB, .streams = 1, .trim_age_ns = 8 * SECOND, .keep = 10 * MIB};
    start_with(_i == 0, &o);
    uint64_t now = 1000 * SECOND;
    ck_assert_int_eq(take(60 * MIB, 0, false, &a), 0);
    ck_assert_int_eq(take(20 * MIB, 0, false, &b), 0);
    give(&b, 0, 0);
    ck_assert_uint_eq(pool_tick(pool, now), 0); /* free for an unknown time */
    for (unsigned i = 1; i < 8; i++) {
        ck_assert_uint_eq(pool_tick(pool, now + i * SECOND), 0);
    }
    ck_assert_int_eq(take(20 * MIB, 0, false, &b), 0); /* needed once: its age starts anew */
    give(&b, 0, 0);
    for (unsigned i = 8; i < 15; i++) {
        ck_assert_uint_eq(pool_tick(pool, now + i * SECOND), 0);
    }
    for (unsigned i = 15; i < 19; i++) {
        (void)pool_tick(pool, now + i * SECOND);
    }
    struct pool_stats s;
    pool_stats(pool, &s);
    ck_assert_uint_eq(s.size, 60 * MIB);
    ck_assert_uint_eq(s.trimmed, 20 * MIB);
    give(&a, 0, 0);
    for (unsigned i = 19; i < 40; i++) {
        (void)pool_tick(pool, now + i * SECOND);
    }
    pool_stats(pool, &s);
    ck_assert_uint_eq(s.size, _i == 0 ? 10 * MIB : 0); /* a block goes back as a whole */
    stop();
}
END_TEST

START_TEST(trimming_is_slow)
{
    struct pool_piece a;
    struct pool_stats s;
    struct pool_options o = {
        .limit = 256 * MIB, .streams = 1, .trim_age_ns = SECOND, .trim_rate = 20 * MIB};
    start_with(true, &o);
    ck_assert_int_eq(take(200 * MIB, 0, false, &a), 0);
    give(&a, 0, 0);
    (void)pool_tick(pool, SECOND);
    uint64_t at_once = 0;
    for (unsigned i = 0; i < 20; i++) { /* two seconds in steps of a tenth */
        uint64_t given = pool_tick(pool, 3 * SECOND + i * SECOND / 10);
        at_once = given > at_once ? given : at_once;
    }
    pool_stats(pool, &s);
    ck_assert_uint_le(at_once, 20 * MIB);
    ck_assert_uint_ge(s.trimmed, 30 * MIB);
    ck_assert_uint_le(s.trimmed, 60 * MIB);
    stop();
}
END_TEST

START_TEST(memory_is_taken_ahead)
{
    struct pool_piece a;
    struct pool_stats s;
    start(false, 64 * MIB);
    ck_assert_int_eq(pool_warm(pool, 30 * MIB, &err), 0);
    pool_stats(pool, &s);
    ck_assert_uint_ge(s.size, 30 * MIB);
    uint64_t calls = s.driver_calls;
    ck_assert_int_eq(take(2 * MIB, 0, false, &a), 0);
    pool_stats(pool, &s);
    ck_assert_uint_eq(s.driver_calls, calls);
    ck_assert_int_eq(pool_warm(pool, UINT64_MAX, &err), 0); /* as much as the limit allows */
    pool_stats(pool, &s);
    ck_assert_uint_eq(s.size, 64 * MIB);
    give(&a, 0, 0);
    stop();
}
END_TEST

#define ROUNDS 300u

static uint64_t state;

static uint64_t rnd(uint64_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % below;
}

/* Whatever another tenant's past or pending work, on one stream or two: all guaranteed memory can
 * be had, as one piece and in pieces of a page. */
START_TEST(what_is_guaranteed_is_there)
{
    static struct pool_piece piece[512];
    static struct pool_piece own[64];
    const struct pool_options o = {.limit = 256 * MIB, .streams = 2};
    const uint64_t guaranteed = 96 * MIB;
    unsigned count = 0;
    uint64_t point[2] = {0, 0};
    fake_pages_init(&source, 256 * MIB);
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, &err), 0);
    set(1, UINT64_MAX, UINT64_MAX, guaranteed);
    state = (uint64_t)_i + 1;
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned n = 0; n < 40; n++) {
            unsigned stream = _i < 2 ? 0 : (unsigned)rnd(2);
            const struct pool_ask ask = {.size = 1 + rnd(UINT64_C(1) << (10 + rnd(15))),
                                         .stream = stream};
            bool more = count < 512 && pool_alloc(pool, &ask, &piece[count], NULL) == 0;
            count += more;
            for (unsigned k = more ? 0 : 2 + (unsigned)rnd(8); k > 0 && count > 0; k--) {
                unsigned i = (unsigned)rnd(count);
                ck_assert_int_eq(pool_free(pool, &piece[i], stream, ++point[stream], &err), 0);
                piece[i] = piece[--count];
            }
            pool_advance(pool, stream,
                         point[stream] - rnd(point[stream] < 16 ? point[stream] + 1 : 16));
        }
        unsigned pieces = round % 2 == 0 ? 1 : (unsigned)(guaranteed / (2 * MIB));
        for (unsigned n = 0; n < pieces; n++) {
            ck_assert_msg(take(guaranteed / pieces, 1, false, &own[n]) == 0, "round %u: %s", round,
                          err.text);
        }
        for (unsigned n = 0; n < pieces; n++) {
            give(&own[n], 0, ++point[0]);
        }
    }
    while (count > 0) {
        give(&piece[--count], 0, 0);
    }
    stop();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pool's accounts");
    TCase *t = tcase_create("quota");
    tcase_add_loop_test(t, a_tenant_is_charged_what_it_keeps_from_others, 0, 2);
    tcase_add_test(t, who_takes_from_a_slab_last_is_charged_for_its_slack);
    tcase_add_test(t, the_hard_limit_counts_slabs_and_a_small_piece_fits_below_it);
    tcase_add_loop_test(t, what_is_guaranteed_others_cannot_take, 0, 2);
    tcase_add_test(t, what_is_guaranteed_is_kept_in_pages);
    tcase_add_test(t, what_is_guaranteed_shares_no_page);
    tcase_add_loop_test(t, what_is_guaranteed_is_there, 0, 4);
    tcase_add_test(t, what_is_reserved_is_charged_before_it_is_there);
    tcase_add_loop_test(t, what_a_tenant_has_reserved_its_pieces_do_not_get, 0, 2);
    tcase_add_loop_test(t, what_is_reserved_has_room_beside_the_pool, 0, 2);
    tcase_add_loop_test(t, free_objects_are_no_reason_for_a_refusal, 0, 2);
    tcase_add_loop_test(t, free_objects_are_no_reason_not_to_reserve, 0, 2);
    tcase_add_test(t, what_is_no_quota_is_refused);
    tcase_add_test(t, a_refusal_says_what_there_is);
    tcase_add_loop_test(t, the_devices_budget_counts, 0, 2);
    tcase_add_loop_test(t, what_nobody_needed_for_a_while_goes_back, 0, 2);
    tcase_add_test(t, trimming_is_slow);
    tcase_add_test(t, memory_is_taken_ahead);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
