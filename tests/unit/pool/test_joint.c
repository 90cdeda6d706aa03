/* Memory of several streams for one request: what joins, which waits it costs, and who gets it
 * afterwards. */
#include <check.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/pool/place.h"
#include "daemon/pool/pool_int.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/pool/fake_source.h"

#define PAGES   24u
#define STREAMS 4u

static struct fake_source source;
static struct pool *pool;
static struct pool_piece piece[PAGES];
static struct err err;
static unsigned waits[STREAMS]; /* on each stream */
static int (*order)(void *user, unsigned stream, unsigned on, uint64_t seq, struct err *e);

static int counted_wait(void *user, unsigned stream, unsigned on, uint64_t seq, struct err *e)
{
    int rc = order(user, stream, on, seq, e);
    waits[on] += rc == 0;
    return rc;
}

/* `share`: a handle is at most this part of the memory. */
static void start_with(bool pages, uint32_t share, unsigned streams)
{
    const struct pool_options o = {.limit = PAGES * FAKE_PAGE, .streams = streams};
    (pages ? fake_pages_init : fake_blocks_init)(&source, PAGES * FAKE_PAGE);
    source.pages.handle_max = PAGES * FAKE_PAGE;
    source.pages.handle_share = share;
    order = source.source.wait;
    source.source.wait = counted_wait;
    memset(waits, 0, sizeof waits);
    memset(piece, 0, sizeof piece);
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, &err), 0);
}

static void check(void)
{
    ck_assert_msg(pool_check(pool, &err) == 0, "%s", err.text);
}

static void stop(void)
{
    check();
    pool_destroy(pool);
    fake_finish(&source);
}

static int take(uint64_t size, unsigned stream, struct pool_piece *ret)
{
    const struct pool_ask ask = {.size = size, .stream = stream};
    int rc = pool_alloc(pool, &ask, ret, &err);
    check();
    ck_assert(rc != 0 || fake_usable(&source, ret));
    return rc;
}

static void give(struct pool_piece *a, unsigned stream, uint64_t seq)
{
    ck_assert_msg(pool_free(pool, a, stream, seq, &err) == 0, "%s", err.text);
    check();
}

/* A full pool: a piece in each page. */
static void start(void)
{
    start_with(true, UINT32_MAX, STREAMS);
    for (unsigned i = 0; i < PAGES; i++) {
        ck_assert_int_eq(take(FAKE_PAGE, 0, &piece[i]), 0);
    }
}

/* The last points of streams 1 to 3 that the stream waits for; 0: none. */
static void check_waits(unsigned stream, uint64_t on1, uint64_t on2, uint64_t on3)
{
    const uint64_t on[] = {0, on1, on2, on3};
    for (unsigned s = 1; s < STREAMS; s++) {
        ck_assert_msg(source.waited[stream][s] == on[s], "stream %u on %u: %" PRIu64, stream, s,
                      source.waited[stream][s]);
    }
}

static unsigned all_waits(void)
{
    return waits[0] + waits[1] + waits[2] + waits[3];
}

/* Every third page: no two adjoin. */
static void give_pages(unsigned from, unsigned count, unsigned stream, uint64_t seq)
{
    for (unsigned i = 0; i < count; i++) {
        give(&piece[from + 3 * i], stream, seq + i);
    }
}

START_TEST(pages_of_several_streams_serve_one_request)
{
    struct pool_piece a;
    start();
    give_pages(0, 2, 1, 10);
    give_pages(6, 2, 2, 20);
    give_pages(12, 2, 3, 30);
    ck_assert_int_eq(take(6 * FAKE_PAGE, 0, &a), 0);
    check_waits(0, 11, 21, 31);
    ck_assert_uint_eq(waits[1] + waits[2] + waits[3], 3); /* one for each */
    give(&a, 0, 1);
    stop();
}
END_TEST

/* Its own stream's pages come first, then those of the stream with most. */
START_TEST(its_own_pages_come_first)
{
    struct pool_piece a;
    start();
    give_pages(0, 1, 0, 5);
    give_pages(3, 3, 1, 10);
    give_pages(12, 2, 2, 20);
    ck_assert_int_eq(take(4 * FAKE_PAGE, 0, &a), 0);
    ck_assert_uint_eq(source.waited[0][1], 12);
    ck_assert_uint_eq(waits[1], 1);
    ck_assert_uint_eq(waits[0] + waits[2] + waits[3], 0);
    stop();
}
END_TEST

static void ask_without_waits(unsigned stream)
{
    struct pool_piece a;
    memset(waits, 0, sizeof waits);
    ck_assert_int_eq(take(FAKE_PAGE, stream, &a), 0);
    ck_assert_uint_eq(all_waits(), 0);
}

/* The oldest join. What is left remains its stream's, also of pages in a row. */
START_TEST(no_more_joins_than_is_needed)
{
    struct pool_piece a;
    start();
    give_pages(0, 2, 2, 20);
    give_pages(6, 3, 1, 10);
    ck_assert_int_eq(take(4 * FAKE_PAGE, 2, &a), 0);
    ck_assert_uint_eq(source.waited[2][1], 11);
    ask_without_waits(1);
    stop();
}
END_TEST

/* A request that two streams' pages suffice for does not wait for the third. */
START_TEST(few_streams_are_waited_for)
{
    struct pool_piece a;
    start();
    give_pages(0, 1, 1, 10);
    give_pages(3, 2, 2, 20);
    give_pages(9, 3, 3, 30);
    ck_assert_int_eq(take(5 * FAKE_PAGE, 0, &a), 0);
    ck_assert_uint_eq(waits[1], 0);
    ck_assert_uint_eq(waits[2], 1);
    ck_assert_uint_eq(waits[3], 1);
    stop();
}
END_TEST

/* A piece that was not used leaves its memory to all that may still use it. */
START_TEST(an_unused_piece_leaves_it_as_it_was)
{
    struct pool_piece a;
    struct pool_piece b;
    struct pool_stats s;
    start();
    give_pages(0, 1, 1, 10);
    give_pages(3, 1, 2, 20);
    ck_assert_int_eq(take(2 * FAKE_PAGE, 0, &a), 0);
    give(&a, 0, 0);
    pool_stats(pool, &s);
    ck_assert_uint_eq(s.pending, 2 * FAKE_PAGE);
    ck_assert_int_eq(take(2 * FAKE_PAGE, 3, &b), 0);
    ck_assert_uint_eq(source.waited[3][1], 10);
    ck_assert_uint_eq(source.waited[3][2], 20);
    ck_assert_uint_eq(source.waited[3][0], 0);
    give(&b, 3, 0);
    pool_advance(pool, 1, 10);
    pool_stats(pool, &s);
    ck_assert_uint_eq(s.pending, 2 * FAKE_PAGE);
    pool_advance(pool, 2, 19);
    pool_stats(pool, &s);
    ck_assert_uint_eq(s.pending, 2 * FAKE_PAGE);
    pool_advance(pool, 2, 20);
    pool_stats(pool, &s);
    ck_assert_uint_eq(s.pending, 0);
    stop();
}
END_TEST

/* One that was used belongs to its stream, as always. */
START_TEST(a_used_piece_is_its_streams)
{
    struct pool_piece a;
    struct pool_piece b;
    start();
    give_pages(0, 1, 1, 10);
    give_pages(3, 1, 2, 20);
    ck_assert_int_eq(take(2 * FAKE_PAGE, 0, &a), 0);
    give(&a, 0, 7);
    memset(waits, 0, sizeof waits);
    ck_assert_int_eq(take(2 * FAKE_PAGE, 0, &a), 0);
    ck_assert_uint_eq(all_waits(), 0);
    give(&a, 0, 8);
    ck_assert_int_eq(take(2 * FAKE_PAGE, 1, &b), 0);
    ck_assert_uint_eq(source.waited[1][0], 8);
    ck_assert_uint_eq(waits[2], 0);
    stop();
}
END_TEST

/* A page in parts of several streams, one of them past. */
START_TEST(a_page_that_streams_share_serves)
{
    struct pool_piece part[3];
    struct pool_piece a;
    start();
    give(&piece[0], 0, 0);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(take(FAKE_PAGE / 4 + (i == 2 ? FAKE_PAGE / 4 : 0), 0, &part[i]), 0);
    }
    give(&part[0], 1, 10);
    give(&part[1], 0, 0);
    give(&part[2], 2, 20);
    ck_assert_int_eq(take(2 * FAKE_PAGE, 0, &a), ERR_DEVICE_MEMORY); /* it is one page */
    ck_assert_uint_eq(pool->joint.last, 0);
    give_pages(3, 1, 3, 30);
    ck_assert_int_eq(take(2 * FAKE_PAGE, 0, &a), 0);
    check_waits(0, 10, 20, 30);
    stop();
}
END_TEST

/* Parts in a row serve a smaller request where their page is in use; or a source's block. */
static void parts_serve(bool pages)
{
    struct pool_piece part[8];
    struct pool_piece all;
    struct pool_piece a;
    start_with(pages, UINT32_MAX, STREAMS);
    for (unsigned i = 0; i < 8; i++) {
        ck_assert_int_eq(take(FAKE_PAGE / 8, 0, &part[i]), 0);
    }
    ck_assert_int_eq(take((PAGES - 1) * FAKE_PAGE, 0, &all), 0);
    give(&part[2], 1, 10);
    give(&part[4], 2, 20);
    give(&part[3], 0, 0);
    give(&part[6], 3, 30);
    ck_assert_int_eq(take(FAKE_PAGE / 2, 0, &a), ERR_DEVICE_MEMORY);
    ck_assert_uint_eq(waits[1] + waits[2] + waits[3], 0);
    ck_assert_int_eq(take(FAKE_PAGE / 8 * 3, 0, &a), 0);
    ck_assert_uint_eq(source.waited[0][1], 10);
    ck_assert_uint_eq(source.waited[0][2], 20);
    ck_assert_uint_eq(waits[3], 0);
    stop();
}

START_TEST(parts_in_a_row_serve)
{
    parts_serve(true);
}
END_TEST

START_TEST(parts_of_a_sources_block_serve)
{
    parts_serve(false);
}
END_TEST

/* Two of a source's blocks are no row. */
START_TEST(blocks_of_a_source_are_two)
{
    struct pool_piece a[2];
    struct pool_piece b;
    start_with(false, 1, STREAMS);
    ck_assert_int_eq(take(PAGES / 2 * FAKE_PAGE, 0, &a[0]), 0);
    ck_assert_int_eq(take(PAGES / 2 * FAKE_PAGE, 0, &a[1]), 0);
    give(&a[0], 1, 10);
    give(&a[1], 2, 20);
    ck_assert_int_eq(take((PAGES / 2 + 1) * FAKE_PAGE, 0, &b), ERR_DEVICE_MEMORY);
    ck_assert_int_eq(take(PAGES / 2 * FAKE_PAGE, 1, &b), 0); /* nothing has joined */
    ck_assert_uint_eq(waits[1] + waits[2], 0);
    stop();
}
END_TEST

/* Kept places are vacated with other streams' pages in them. */
START_TEST(vacated_pages_join)
{
    struct pool_place place[2];
    struct pool_piece a;
    start();
    ck_assert_int_eq(pool_vacate(pool, &piece[0], 1, 10, &place[0], &err), 0);
    ck_assert_int_eq(pool_vacate(pool, &piece[6], 2, 20, &place[1], &err), 0);
    give_pages(3, 1, 3, 30);
    ck_assert_int_eq(take(3 * FAKE_PAGE, 0, &a), 0);
    check_waits(0, 10, 20, 30);
    ck_assert(pool_place_kept(pool, &place[0]) && pool_place_kept(pool, &place[1]));
    stop();
}
END_TEST

/* A wait that fails refuses the request, and nothing is lost. */
START_TEST(a_wait_that_fails_refuses)
{
    struct pool_piece a;
    start();
    give_pages(0, 2, 1, 10);
    give_pages(6, 2, 2, 20);
    int rc = ERR_DEVICE_MEMORY;
    unsigned tries = 0;
    while (rc != 0 && tries++ < 40) {
        source.fail_at = source.calls + tries;
        rc = take(4 * FAKE_PAGE, 0, &a);
    }
    source.fail_at = 0;
    ck_assert_int_eq(rc, 0);
    ck_assert_uint_gt(tries, 1);
    ck_assert_uint_eq(source.waited[0][1], 11);
    ck_assert_uint_eq(source.waited[0][2], 21);
    stop();
    start();
    source.source.wait = NULL;
    pool->source.wait = NULL;
    give_pages(0, 1, 1, 10);
    give_pages(3, 1, 2, 20);
    ck_assert_int_eq(take(2 * FAKE_PAGE, 0, &a), ERR_DEVICE_MEMORY);
    stop();
}
END_TEST

/* Points of the joint line are few: later ones are one point then, which is past last. */
START_TEST(points_are_never_too_many)
{
    struct pool_piece a;
    struct pool_stats s;
    uint64_t seq = 0;
    start();
    for (unsigned round = 0; round < 3 * JOINTS; round++) {
        seq++;
        give(&piece[0], 1, seq);
        give(&piece[3], 2, seq);
        ck_assert_int_eq(take(2 * FAKE_PAGE, 0, &a), 0);
        ck_assert_uint_eq(source.waited[0][1], seq);
        ck_assert_uint_eq(source.waited[0][2], seq);
        give(&a, 3, seq);
        ck_assert_int_eq(take(FAKE_PAGE, 3, &piece[0]), 0);
        ck_assert_int_eq(take(FAKE_PAGE, 3, &piece[3]), 0);
    }
    ck_assert_uint_gt(pool->joint.last, JOINTS / 2);
    ck_assert_uint_le(pool->joint.last, JOINTS);
    give(&piece[0], 0, 0);
    give(&piece[3], 0, 0);
    for (unsigned stream = 0; stream < STREAMS; stream++) {
        pool_stats(pool, &s);
        ck_assert_uint_gt(s.pending, 0);
        pool_advance(pool, stream, seq);
    }
    pool_stats(pool, &s);
    ck_assert_uint_eq(s.pending, 0);
    ck_assert_uint_eq(pool->done[joint_line(pool)], pool->joint.last);
    stop();
}
END_TEST

static unsigned asked[STREAMS];

static int reached(void *user, unsigned stream, uint64_t *ret_seq, struct err *e)
{
    (void)user;
    (void)e;
    asked[stream]++;
    *ret_seq = 0;
    return 0;
}

/* Before a refusal all streams are asked that joint memory waits for. */
START_TEST(its_streams_are_asked)
{
    struct pool_piece a;
    start();
    give_pages(0, 1, 1, 10);
    give_pages(3, 1, 2, 20);
    ck_assert_int_eq(take(2 * FAKE_PAGE, 0, &a), 0);
    give(&a, 0, 0);
    pool->source.reached = reached;
    memset(asked, 0, sizeof asked);
    ck_assert_int_eq(take(3 * FAKE_PAGE, 0, &a), ERR_DEVICE_MEMORY);
    ck_assert_uint_eq(asked[1], 1);
    ck_assert_uint_eq(asked[2], 1);
    ck_assert_uint_eq(asked[0] + asked[3], 0);
    stop();
}
END_TEST

/* With as many streams as there can be. */
START_TEST(all_streams_join)
{
    struct pool_piece a;
    start_with(true, UINT32_MAX, POOL_STREAMS);
    source.source.wait = pool->source.wait = order;
    for (unsigned i = 0; i < PAGES; i++) {
        ck_assert_int_eq(take(FAKE_PAGE, 0, &piece[i]), 0);
    }
    for (unsigned s = 0; s < POOL_STREAMS; s++) {
        give(&piece[s], s, 10 + s);
    }
    ck_assert_int_eq(take(POOL_STREAMS * FAKE_PAGE, 0, &a), 0);
    for (unsigned s = 1; s < POOL_STREAMS; s++) {
        ck_assert_uint_eq(source.waited[0][s], 10 + s);
    }
    give(&a, 0, 0);
    stop();
}
END_TEST

/* ---- where addresses are few, and handles large -----------------------------------------------*/

/* `addresses`, in pages; `share`: 1 for handles of up to 8 pages. */
static void start_tight(uint64_t addresses, uint32_t share)
{
    start_with(true, share, STREAMS);
    pool_destroy(pool);
    source.pages.handle_max = 8 * FAKE_PAGE;
    const struct pool_options o = {
        .limit = PAGES * FAKE_PAGE, .address_bytes = addresses * FAKE_PAGE, .streams = STREAMS};
    ck_assert_int_eq(pool_create(&source.source, &o, &pool, &err), 0);
}

/* In pages; pieces lie in a row. */
static void fill(const unsigned *pages, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        ck_assert_int_eq(take(pages[i] * FAKE_PAGE, 0, &piece[i]), 0);
        ck_assert(i == 0 ||
                  piece[i].offset == piece[i - 1].offset + pages[i - 1] * (uint64_t)FAKE_PAGE);
    }
}

/* Of pages in a row only as many as are needed. */
START_TEST(a_part_of_a_row_joins)
{
    static const unsigned pages[] = {4, 1, 2, 1, 2, 1, 13};
    struct pool_piece a;
    start_tight(PAGES + 5, UINT32_MAX);
    fill(pages, 7);
    give(&piece[0], 1, 10);
    for (unsigned i = 1; i < 6; i += 2) {
        give(&piece[i], 2, 20);
    }
    ck_assert_int_eq(take(5 * FAKE_PAGE, 2, &a), 0);
    ck_assert_uint_eq(waits[1], 1);
    ask_without_waits(1);
    ask_without_waits(1);
    stop();
}
END_TEST

/* The handles at both ends are too small for the need, and the last one reaches beyond it. */
START_TEST(handles_of_all_sizes_serve)
{
    static const unsigned pages[] = {14, 1, 8, 1};
    struct pool_piece a;
    start_tight(PAGES + 12, 1);
    fill(pages, 4);
    for (unsigned i = 1; i < 4; i++) {
        give(&piece[i], 1, 10);
    }
    source.source.wait = counted_wait;
    ck_assert_int_eq(take(11 * FAKE_PAGE, 0, &a), ERR_DEVICE_MEMORY);
    ck_assert_int_eq(take(3 * FAKE_PAGE, 0, &a), 0);
    ck_assert_uint_eq(source.waited[0][1], 10);
    ck_assert_uint_eq(pool->joint.last, 0);         /* one stream's were enough */
    ck_assert_uint_ge(a.offset, PAGES * FAKE_PAGE); /* they moved, and no handle was cut */
    stop();
}
END_TEST

/* Addresses where a stream still uses pages that moved keep none but these from others. */
START_TEST(addresses_that_are_not_used_serve)
{
    static const unsigned pages[] = {12, 2, 4, 4, 2};
    struct pool_piece a;
    struct pool_piece b;
    start_tight(PAGES + 8, UINT32_MAX);
    fill(pages, 5);
    const uint64_t used = piece[2].offset;
    give(&piece[2], 1, 10);
    give(&piece[3], 0, 0);
    ck_assert_int_eq(take(8 * FAKE_PAGE, 0, &a), 0); /* moves both */
    ck_assert_uint_eq(source.waited[0][1], 10);
    give(&piece[1], 0, 0);
    give(&piece[4], 0, 0);
    ck_assert_int_eq(take(3 * FAKE_PAGE, 0, &b), 0);
    ck_assert(b.offset >= used + 4 * FAKE_PAGE || b.offset + b.size <= used);
    stop();
}
END_TEST

/* Also for memory that a stream may still use. */
START_TEST(addresses_serve_memory_that_waits)
{
    static const unsigned pages[] = {8, 2, 4, 2, 4, 2};
    struct pool_piece a;
    struct pool_piece b;
    struct pool_piece c;
    start_tight(PAGES + 9, UINT32_MAX);
    fill(pages, 6);
    give(&piece[2], 0, 0);
    give(&piece[4], 0, 0);
    ck_assert_int_eq(take(8 * FAKE_PAGE, 0, &a), 0);
    ck_assert_int_eq(take(2 * FAKE_PAGE, 0, &b), 0); /* before the last free address */
    ck_assert_uint_eq(b.offset, (PAGES + 6) * FAKE_PAGE);
    give(&b, 0, 0);
    give(&piece[1], 2, 20);
    ck_assert_int_eq(take(3 * FAKE_PAGE, 0, &c), 0);
    ck_assert_uint_eq(source.waited[0][2], 20);
    stop();
}
END_TEST

/* A handle that a stream still uses elsewhere cannot be broken. A part of it serves all the same.
 */
START_TEST(a_handle_used_elsewhere_serves)
{
    static const unsigned pages[] = {18, 4, 2};
    struct pool_piece a;
    struct pool_stats before;
    struct pool_stats after;
    start_tight(PAGES + 24, 1);
    fill(pages, 3);
    give(&piece[1], 1, 10);
    give(&piece[2], 0, 0);
    ck_assert_int_eq(take(6 * FAKE_PAGE, 0, &a), 0);
    give(&a, 0, 5);
    pool_advance(pool, 0, 5); /* the pool does not know yet that stream 1 has come to 10 */
    pool_stats(pool, &before);
    ck_assert_int_eq(take(3 * FAKE_PAGE, 0, &a), 0);
    pool_stats(pool, &after);
    ck_assert_uint_eq(after.breaks, before.breaks);
    stop();
}
END_TEST

SUITE_MAIN("memory of several streams", pages_of_several_streams_serve_one_request,
           its_own_pages_come_first, no_more_joins_than_is_needed, few_streams_are_waited_for,
           an_unused_piece_leaves_it_as_it_was, a_used_piece_is_its_streams,
           a_page_that_streams_share_serves, parts_in_a_row_serve, parts_of_a_sources_block_serve,
           blocks_of_a_source_are_two, vacated_pages_join, a_wait_that_fails_refuses,
           points_are_never_too_many, its_streams_are_asked, all_streams_join,
           a_part_of_a_row_joins, handles_of_all_sizes_serve, addresses_that_are_not_used_serve,
           addresses_serve_memory_that_waits, a_handle_used_elsewhere_serves)
