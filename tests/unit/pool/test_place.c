/*
 * Pieces that give their memory up and return to their addresses, over a source that maps pages at
 * several places.
 */
#include <check.h>
#include <stdlib.h>

#include "daemon/pool/place.h"
#include "daemon/pool/pool_int.h"
#include "daemon/pool/quota.h"
#include "tests/unit/pool/fake_source.h"

#define PAGE    (UINT64_C(64) << 10)
#define LIMIT   (16 * PAGE)
#define SERVICE 1u

static struct fake_source source;
static struct pool *pool;
static struct err err;
static uint64_t now; /* the latest point of the service stream */

static void start(uint64_t address)
{
    const struct pool_options o = {.limit = LIMIT, .address_bytes = address, .streams = 3};
    fake_pages_init(&source, LIMIT);
    source.pages.page_bytes = PAGE;
    now = 0;
    ck_assert_msg(pool_create(&source.source, &o, &pool, &err) == 0, "%s", err.text);
}

static void stop(void)
{
    pool_destroy(pool);
    fake_finish(&source);
}

static void check(void)
{
    ck_assert_msg(pool_check(pool, &err) == 0, "%s", err.text);
}

static int take(struct pool_piece *piece, uint64_t pages, unsigned stream,
                const struct pool_place *place)
{
    const struct pool_ask ask = {
        .size = pages * PAGE, .stream = stream, .tenant = 1, .tag = 1, .place = place};
    int rc = pool_alloc(pool, &ask, piece, &err);
    ck_assert(rc != 0 || fake_usable(&source, piece));
    check();
    return rc;
}

static struct pool_piece taken(uint64_t pages)
{
    struct pool_piece piece;
    ck_assert_msg(take(&piece, pages, SERVICE, NULL) == 0, "%s", err.text);
    return piece;
}

static struct pool_place vacated(struct pool_piece *piece, uint64_t seq)
{
    struct pool_place place;
    ck_assert_int_eq(pool_vacate(pool, piece, SERVICE, seq, &place, &err), 0);
    ck_assert_ptr_null(piece->range);
    check();
    return place;
}

/* Vacates in the order of the service stream, which then advances past it. */
static struct pool_place rested(struct pool_piece *piece)
{
    struct pool_place place = vacated(piece, ++now);
    pool_advance(pool, SERVICE, now);
    check();
    return place;
}

static struct pool_stats stats(void)
{
    struct pool_stats s;
    pool_stats(pool, &s);
    return s;
}

static void give(struct pool_piece *piece)
{
    ck_assert_int_eq(pool_free(pool, piece, SERVICE, 0, &err), 0);
    check();
}

START_TEST(a_piece_comes_back_to_its_address)
{
    start(0);
    struct pool_piece a = taken(6);
    struct pool_piece b = taken(10);
    const uint64_t at = a.offset;
    struct pool_place place = rested(&a);
    ck_assert_uint_eq(place.offset, at);
    ck_assert(pool_place_kept(pool, &place));
    ck_assert_uint_eq(stats().used, 10 * PAGE);
    ck_assert_uint_eq(stats().cached, 6 * PAGE);
    ck_assert_uint_eq(stats().vacant, 6 * PAGE);
    struct pool_piece c = taken(5); /* other pieces use its memory, not its addresses */
    ck_assert(c.offset + c.size <= at || c.offset >= at + 6 * PAGE);
    ck_assert_int_eq(take(&a, 6, SERVICE, &place), ERR_DEVICE_MEMORY);
    ck_assert(pool_place_kept(pool, &place));
    give(&c);
    ck_assert_int_eq(take(&a, 6, SERVICE, &place), 0);
    ck_assert_uint_eq(a.offset, at);
    ck_assert(!pool_place_kept(pool, &place));
    ck_assert_uint_eq(stats().came_back, 1);
    ck_assert_uint_eq(stats().vacant, 0);
    give(&a);
    give(&b);
    stop();
}
END_TEST

/* Kept addresses are no memory: a snapshot shows no more memory than there is. */
START_TEST(a_snapshot_shows_what_is_there)
{
    start(0);
    struct pool_piece a = taken(6);
    struct pool_piece b = taken(10);
    struct pool_place place = _i == 0 ? rested(&a) : vacated(&a, now = 3);
    struct pool_piece c = taken(5);
    uint64_t sum[POOL_EXTENT_LOST + 1] = {0};
    uint64_t at = 0;
    uint64_t bytes = pool_snapshot_bytes(pool);
    void *snapshot = malloc(bytes);
    ck_assert_ptr_nonnull(snapshot);
    ck_assert_int_eq(pool_snapshot(pool, snapshot, bytes, &err), 0);
    struct pool_cursor cursor = {0};
    for (struct pool_extent x; pool_snapshot_next(snapshot, &cursor, &x); at += x.size) {
        ck_assert_uint_eq(x.at, at);
        ck_assert_uint_gt(x.size, 0);
        sum[x.state] += x.size;
    }
    free(snapshot);
    ck_assert_uint_eq(at, pool->space);
    ck_assert_uint_eq(sum[POOL_EXTENT_LIVE], 15 * PAGE);
    ck_assert_uint_eq(sum[_i == 0 ? POOL_EXTENT_FREE : POOL_EXTENT_PENDING], PAGE);
    ck_assert_uint_eq(sum[POOL_EXTENT_FREE] + sum[POOL_EXTENT_PENDING], PAGE);
    ck_assert_uint_eq(stats().size, 16 * PAGE);
    pool_place_leave(pool, &place);
    give(&b);
    give(&c);
    stop();
}
END_TEST

/* Pages that were mapped at a place, but to which access failed, do not return there without
 * access. */
START_TEST(what_is_mapped_without_access_is_not_used)
{
    start(0);
    struct pool_piece a = taken(6);
    const uint64_t at = a.offset;
    struct pool_place place = rested(&a);
    ck_assert_uint_eq(pool_trim(pool, 0), 6 * PAGE);
    source.fail_at = source.calls + 2 * 6 + 1; /* of creating, mapping and access */
    ck_assert_int_eq(take(&a, 6, SERVICE, &place), ERR_DEVICE_MEMORY);
    ck_assert(pool_place_kept(pool, &place));
    struct pool_piece b = taken(6);
    ck_assert_uint_ne(b.offset, at);
    ck_assert_uint_eq(source.taken, 6 * PAGE); /* the same pages */
    pool_place_leave(pool, &place);
    give(&b);
    ck_assert_uint_eq(stats().cached, 6 * PAGE);
    ck_assert_uint_eq(recall_take(pool, at, 6 * PAGE, SERVICE), BLOCK_NONE);
    check();
    struct pool_piece c = taken(6);
    give(&c);
    stop();
}
END_TEST

/* The new user of the memory comes after the service stream's use of it. */
START_TEST(memory_goes_in_the_order_of_streams)
{
    struct pool_piece c;
    start(0);
    struct pool_piece a = taken(8);
    struct pool_piece b = taken(8);
    struct pool_place place = vacated(&a, now = 7);
    ck_assert_uint_eq(stats().pending, 8 * PAGE);
    ck_assert_int_eq(take(&c, 8, _i == 0 ? SERVICE : 2, NULL), 0);
    ck_assert_uint_eq(source.waited[2][SERVICE], _i == 0 ? 0 : 7);
    ck_assert_uint_eq(stats().pending, 0);
    ck_assert(c.offset != place.offset);
    ck_assert_int_eq(pool_free(pool, &c, 2, 0, &err), 0); /* the piece was not used */
    ck_assert_uint_eq(stats().pending, 8 * PAGE);         /* the copy still runs */
    pool_advance(pool, SERVICE, now);
    ck_assert_uint_eq(stats().pending, 0);
    ck_assert_int_eq(take(&a, 8, 0, &place), 0);
    ck_assert_uint_eq(a.offset, place.offset);
    give(&a);
    give(&b);
    stop();
}
END_TEST

/* Two pieces that take turns: from the second time on each has its page mapped at its own place. */
START_TEST(taking_turns_comes_to_rest)
{
    struct pool_piece piece[2];
    struct pool_place place[2];
    uint64_t at[2];
    uint64_t calls = 0;
    start(0);
    struct pool_piece rest = taken(8);
    for (unsigned i = 0; i < 2; i++) {
        piece[i] = taken(8);
        at[i] = piece[i].offset;
        place[i] = rested(&piece[i]);
    }
    for (unsigned n = 0; n < 10; n++) {
        calls = n < 2 ? source.calls : calls;
        ck_assert_int_eq(take(&piece[n % 2], 8, SERVICE, &place[n % 2]), 0);
        ck_assert_uint_eq(piece[n % 2].offset, at[n % 2]);
        place[n % 2] = vacated(&piece[n % 2], ++now);
        pool_advance(pool, SERVICE, _i == 0 ? now : now - 1);
        check();
    }
    ck_assert_uint_eq(source.calls, calls);
    give(&rest);
    stop();
}
END_TEST

/* While the piece's own last use runs, nothing else may be mapped there. */
START_TEST(a_place_in_use_cannot_be_filled_with_other_pages)
{
    struct pool_piece d;
    start(0);
    struct pool_piece a = taken(8);
    struct pool_piece b = taken(8);
    const uint64_t at = a.offset;
    struct pool_place place = vacated(&a, now = 3);
    struct pool_piece c = taken(8);
    give(&b);
    ck_assert_int_eq(take(&a, 8, SERVICE, &place), 0);
    ck_assert_uint_ne(a.offset, at);
    ck_assert_int_eq(take(&d, 8, SERVICE, NULL), ERR_DEVICE_MEMORY);
    pool_advance(pool, SERVICE, now);
    check();
    give(&a);
    give(&c);
    stop();
}
END_TEST

START_TEST(free_pages_of_a_place_go_back_to_the_source)
{
    start(0);
    struct pool_piece a = taken(8);
    struct pool_place place = rested(&a);
    ck_assert_uint_eq(pool_trim(pool, 3 * PAGE), 5 * PAGE);
    check();
    ck_assert_uint_eq(source.taken, 3 * PAGE);
    ck_assert_uint_eq(pool_trim(pool, 0), 3 * PAGE);
    ck_assert_uint_eq(source.taken, 0);
    ck_assert_int_eq(take(&a, 8, SERVICE, &place), 0);
    ck_assert_uint_eq(a.offset, place.offset);
    give(&a);
    stop();
}
END_TEST

START_TEST(a_place_that_is_left_is_free)
{
    start(0);
    struct pool_piece a = taken(8);
    struct pool_place place = rested(&a);
    struct pool_place copy = place;
    pool_place_leave(pool, &place);
    check();
    ck_assert(!pool_place_kept(pool, &copy));
    ck_assert_uint_eq(stats().vacant, 0);
    ck_assert_uint_eq(stats().cached, 8 * PAGE);
    ck_assert_int_eq(take(&a, 8, SERVICE, &copy), 0); /* wherever that is */
    pool_place_leave(pool, &copy);
    place = vacated(&a, ++now);
    pool_place_leave(pool, &place); /* while its last use runs */
    check();
    ck_assert_uint_eq(stats().pending, 8 * PAGE);
    pool_advance(pool, SERVICE, now);
    check();
    ck_assert_uint_eq(stats().cached, 8 * PAGE);
    stop();
}
END_TEST

/* At most 16 pages of addresses are kept: the oldest place is given up. */
START_TEST(addresses_are_used_up)
{
    struct pool_piece piece[5];
    struct pool_place place[5];
    start(4 * LIMIT);
    for (unsigned i = 0; i < 5; i++) {
        piece[i] = taken(4);
        place[i] = rested(&piece[i]);
    }
    ck_assert_uint_eq(stats().given_up, 1);
    ck_assert(!pool_place_kept(pool, &place[0]));
    for (unsigned i = 1; i < 5; i++) {
        ck_assert_int_eq(take(&piece[i], 4, SERVICE, &place[i]), 0);
        ck_assert_uint_eq(piece[i].offset, place[i].offset);
        place[i] = rested(&piece[i]);
    }
    ck_assert_int_eq(take(&piece[0], 4, SERVICE, &place[0]), 0);
    give(&piece[0]);
    stop();
}
END_TEST

/* A request without enough neighbouring addresses gets those of a place. */
START_TEST(addresses_in_a_row_come_before_places)
{
    struct pool_piece part[2];
    struct pool_place place[2];
    start(18 * PAGE);
    for (unsigned i = 0; i < 2; i++) {
        part[i] = taken(2);
    }
    for (unsigned i = 0; i < 2; i++) {
        place[i] = rested(&part[i]);
    }
    struct pool_piece a = taken(16);
    ck_assert_uint_gt(stats().given_up, 0);
    give(&a);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(take(&part[i], 2, SERVICE, &place[i]), 0);
        give(&part[i]);
    }
    stop();
}
END_TEST

/* A place that cannot be given up is examined once, until a stream advances. */
START_TEST(what_streams_use_is_passed_over)
{
    enum { BUSY = 32 };
    struct pool_piece piece[BUSY];
    struct pool_place place[BUSY];
    struct pool_piece part;
    start(16 * LIMIT);
    for (unsigned i = 0; i < BUSY; i++) { /* each gets a page of its predecessor: 2 each, for 64 */
        piece[i] = taken(2);
        place[i] = vacated(&piece[i], ++now);
        ck_assert_uint_ne(place[i].size, 0);
        ck_assert_int_eq(take(&part, 1, SERVICE, NULL), 0);
        give(&part);
    }
    for (unsigned i = 0; i < 4 * BUSY; i++) { /* at most a quarter of the addresses is kept */
        struct pool_piece more = taken(2);
        (void)vacated(&more, ++now);
        ck_assert_int_eq(take(&part, 1, SERVICE, NULL), 0);
        give(&part);
    }
    ck_assert_uint_ne(pool->vacant.stuck, BLOCK_NONE); /* the walk begins behind it */
    ck_assert(pool_place_kept(pool, &place[0]));
    pool_advance(pool, SERVICE, now);
    check();
    struct pool_piece last = taken(2);
    ck_assert_uint_ne(vacated(&last, 0).size, 0);
    ck_assert(!pool_place_kept(pool, &place[0]));
    stop();
}
END_TEST

START_TEST(what_is_not_whole_pages_is_freed)
{
    struct pool_piece piece[3];
    struct pool_place place;
    static const uint64_t sizes[3] = {1000, PAGE / 2 * 3, 3 * PAGE - POOL_ALIGN};
    start(0);
    for (unsigned i = 0; i < 3; i++) {
        const struct pool_ask ask = {.size = sizes[i], .tenant = 1};
        ck_assert_int_eq(pool_alloc(pool, &ask, &piece[i], &err), 0);
        place = vacated(&piece[i], 0);
        ck_assert_uint_eq(place.size, 0);
    }
    ck_assert_uint_eq(stats().used, 0);
    ck_assert_uint_eq(stats().vacant, 0);
    stop();
}
END_TEST

START_TEST(pieces_of_a_sources_blocks_are_freed)
{
    const struct pool_options o = {.limit = LIMIT, .streams = 3};
    fake_blocks_init(&source, LIMIT);
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, &err), 0);
    struct pool_piece a = taken(8);
    struct pool_place place = vacated(&a, 0);
    ck_assert_uint_eq(place.size, 0);
    ck_assert_int_eq(take(&a, 8, SERVICE, &place), 0);
    give(&a);
    stop();
}
END_TEST

/* A second free is an error, as with any other piece. */
START_TEST(a_piece_is_vacated_once)
{
    struct pool_place place;
    start(0);
    struct pool_piece a = taken(8);
    struct pool_piece copy = a;
    struct pool_place first = rested(&a);
    ck_assert_int_eq(pool_vacate(pool, &copy, SERVICE, 0, &place, &err), ERR_BAD_HANDLE);
    ck_assert_int_eq(pool_free(pool, &copy, SERVICE, 0, &err), ERR_BAD_HANDLE);
    ck_assert(pool_place_kept(pool, &first));
    stop();
}
END_TEST

/* The tenant is charged for memory, not for kept addresses; its limit applies when the piece
 * returns. */
START_TEST(the_ledger_is_right)
{
    struct pool_account a;
    const struct pool_quota quota = {.hard = 8 * PAGE, .soft = UINT64_MAX};
    start(0);
    ck_assert_int_eq(pool_set_quota(pool, 1, &quota, &err), 0);
    struct pool_piece one = taken(8);
    struct pool_place place = rested(&one);
    pool_account(pool, 1, &a);
    ck_assert_uint_eq(a.mapped, 0);
    struct pool_piece other = taken(4);
    ck_assert_int_eq(take(&one, 8, SERVICE, &place), ERR_LIMIT);
    ck_assert(pool_place_kept(pool, &place));
    give(&other);
    ck_assert_int_eq(take(&one, 8, SERVICE, &place), 0);
    ck_assert_uint_eq(one.offset, place.offset);
    pool_account(pool, 1, &a);
    ck_assert_uint_eq(a.mapped, 8 * PAGE);
    ck_assert_uint_eq(a.meter.live, 1);
    give(&one);
    stop();
}
END_TEST

/* Memory that another tenant used meanwhile is foreign; unused memory still has the tenant's own
 * bytes. */
START_TEST(bytes_of_others_are_told)
{
    start(0);
    struct pool_piece a = taken(8);
    struct pool_piece b = taken(8);
    a.foreign = b.foreign = false;
    struct pool_place place = rested(&a);
    ck_assert_int_eq(take(&a, 8, SERVICE, &place), 0);
    ck_assert(!a.foreign);
    place = rested(&a);
    const struct pool_ask ask = {.size = PAGE, .tenant = 2, .stream = SERVICE};
    struct pool_piece c;
    ck_assert_int_eq(pool_alloc(pool, &ask, &c, &err), 0);
    ck_assert(c.foreign);
    c.foreign = false;
    give(&c);
    ck_assert_int_eq(take(&a, 8, SERVICE, &place), 0);
    ck_assert_uint_eq(a.offset, place.offset);
    ck_assert(a.foreign);
    give(&a);
    give(&b);
    stop();
}
END_TEST

/* Any call may fail on the return: the piece returns then or later, and no memory is lost. */
START_TEST(each_call_may_fail)
{
    uint64_t calls = 1;
    for (uint64_t fail = 1; fail <= calls; fail++) {
        struct pool_piece c;
        start(0);
        struct pool_piece a = taken(6);
        struct pool_piece b = taken(10);
        const uint64_t at = a.offset;
        struct pool_place place = vacated(&a, ++now);
        uint64_t before = source.calls;
        source.fail_code = _i == 0 ? ERR_INTERNAL : ERR_DEVICE_MEMORY;
        source.fail_at = before + fail;
        int rc = take(&c, 5, 2, NULL);
        rc = rc == 0 ? 0 : take(&c, 5, 2, NULL);
        pool_advance(pool, SERVICE, now);
        check();
        if (rc == 0) {
            give(&c);
        }
        rc = take(&a, 6, 2, &place);
        rc = rc == 0 ? 0 : take(&a, 6, 2, &place);
        ck_assert_msg(rc == 0, "call %llu: %s", (unsigned long long)fail, err.text);
        ck_assert(_i == 0 || a.offset == at); /* lack of memory ends no place */
        calls = source.calls - before;
        source.fail_at = 0;
        give(&a);
        give(&b);
        (void)pool_trim(pool, 0);
        check();
        ck_assert_uint_eq(stats().used, 0);
        stop();
    }
    ck_assert_uint_gt(calls, 6);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("places of pieces that are elsewhere");
    TCase *t = tcase_create("places");
    tcase_add_test(t, a_piece_comes_back_to_its_address);
    tcase_add_loop_test(t, a_snapshot_shows_what_is_there, 0, 2);
    tcase_add_test(t, what_is_mapped_without_access_is_not_used);
    tcase_add_loop_test(t, memory_goes_in_the_order_of_streams, 0, 2);
    tcase_add_loop_test(t, taking_turns_comes_to_rest, 0, 2);
    tcase_add_test(t, a_place_in_use_cannot_be_filled_with_other_pages);
    tcase_add_test(t, free_pages_of_a_place_go_back_to_the_source);
    tcase_add_test(t, a_place_that_is_left_is_free);
    tcase_add_test(t, addresses_are_used_up);
    tcase_add_test(t, addresses_in_a_row_come_before_places);
    tcase_add_test(t, what_streams_use_is_passed_over);
    tcase_add_test(t, what_is_not_whole_pages_is_freed);
    tcase_add_test(t, pieces_of_a_sources_blocks_are_freed);
    tcase_add_test(t, a_piece_is_vacated_once);
    tcase_add_test(t, the_ledger_is_right);
    tcase_add_test(t, bytes_of_others_are_told);
    tcase_add_loop_test(t, each_call_may_fail, 0, 2);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
