/*
 * Kept places beside pieces of any size, over a source that maps pages at several places; nothing
 * moves. A returning piece is refused only where it would be refused without a place, too. The
 * source unmaps only pages that no stream uses any more.
 */
#include <check.h>
#include <string.h>

#include "daemon/pool/place.h"
#include "daemon/pool/pool_int.h"
#include "daemon/pool/quota.h"
#include "tests/unit/pool/fake_source.h"

#define PAGE    (UINT64_C(64) << 10)
#define LIMIT   (64 * PAGE)
#define STREAMS 3u
#define LIVE    64u
#define RESTS   32u
#define WAITS   65536u
#define USES    65536u
#define RUNS    16u

/* Instrumented runs take ten times as long. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STEPS 4000u
#else
#define STEPS 12000u
#endif

/* A piece that gave its memory up. */
struct rest {
    struct pool_place place;
    uint64_t size; /* bytes */
};

/* A stream's use of addresses, up to a point. */
struct use {
    uint64_t at, size;
    unsigned stream;
    uint64_t seq;
};

struct wait {
    unsigned stream;
    uint64_t from; /* commands of `stream` from this point on come after … */
    unsigned on;
    uint64_t seq; /* … this one of `on` */
};

static struct {
    struct fake_source source;
    struct pool *pool;
    struct pool_piece piece[LIVE];
    unsigned first[LIVE]; /* the stream of each piece's request */
    unsigned live;
    struct rest rest[RESTS];
    unsigned rests;
    uint64_t issued[STREAMS];
    uint64_t done[STREAMS]; /* points reported to the pool */
    uint64_t past[STREAMS]; /* points reached: a stream that advances has passed the points it
                               waited for */
    struct wait wait[WAITS];
    unsigned waits;
    struct use use[USES];
    unsigned uses;
    int (*unmap)(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e);
    int (*order)(void *user, unsigned stream, unsigned on, uint64_t seq, struct err *e);
    uint64_t state;
    bool service; /* only stream 1 leaves places */
    unsigned returned, elsewhere, refused;
} m;

static struct err err;

static uint64_t rnd(uint64_t below)
{
    m.state ^= m.state << 13;
    m.state ^= m.state >> 7;
    m.state ^= m.state << 17;
    return m.state % below;
}

/* ---- what streams do --------------------------------------------------------------------------*/

static void note_wait(unsigned stream, unsigned on, uint64_t seq)
{
    ck_assert_uint_lt(m.waits, WAITS);
    m.wait[m.waits++] =
        (struct wait){.stream = stream, .from = m.issued[stream] + 1, .on = on, .seq = seq};
}

static int noted_wait(void *user, unsigned stream, unsigned on, uint64_t seq, struct err *e)
{
    note_wait(stream, on, seq);
    return m.order(user, stream, on, seq, e);
}

static int careful_unmap(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e)
{
    for (unsigned i = 0; i < m.uses; i++) {
        const struct use *u = &m.use[i];
        ck_assert_msg(u->seq <= m.past[u->stream] || at >= u->at + u->size || at + bytes <= u->at,
                      "what stream %u uses is unmapped", u->stream);
    }
    return m.unmap(user, range, at, bytes, e);
}

static void come_to(unsigned stream, uint64_t seq)
{
    if (seq <= m.past[stream]) {
        return;
    }
    m.past[stream] = seq;
    for (unsigned i = 0; i < m.waits; i++) {
        const struct wait *w = &m.wait[i];
        if (w->stream == stream && w->from <= seq) {
            come_to(w->on, w->seq);
        }
    }
}

static void advance(unsigned stream)
{
    uint64_t most = m.issued[stream] - m.done[stream];
    m.done[stream] += most > 0 ? 1 + rnd(most) : 0;
    come_to(stream, m.done[stream]);
    pool_advance(m.pool, stream, m.done[stream]);
    unsigned kept = 0;
    for (unsigned i = 0; i < m.uses; i++) {
        m.use[kept] = m.use[i];
        kept += m.use[i].seq > m.past[m.use[i].stream];
    }
    m.uses = kept;
    kept = 0;
    for (unsigned i = 0; i < m.waits; i++) {
        m.wait[kept] = m.wait[i];
        kept += m.wait[i].seq > m.past[m.wait[i].on];
    }
    m.waits = kept;
}

/* ---- steps ------------------------------------------------------------------------------------*/

static void take(void)
{
    uint64_t size = rnd(2) == 0 ? (1 + rnd(12)) * PAGE : PAGE + rnd(14 * PAGE);
    const struct pool_ask ask = {
        .size = size, .stream = (unsigned)rnd(STREAMS), .tenant = 1 + (unsigned)rnd(2)};
    if (m.live < LIVE && pool_alloc(m.pool, &ask, &m.piece[m.live], &err) == 0) {
        ck_assert(fake_usable(&m.source, &m.piece[m.live]));
        m.first[m.live++] = ask.stream;
    }
}

static void give(void)
{
    if (m.live == 0) {
        return;
    }
    unsigned i = (unsigned)rnd(m.live);
    struct pool_piece piece = m.piece[i];
    bool stays = m.rests < RESTS && rnd(3) != 0;
    unsigned stream = stays && m.service ? 1 : (unsigned)rnd(STREAMS);
    if (stream != m.first[i]) { /* the owner orders one after the other */
        note_wait(stream, m.first[i], ++m.issued[m.first[i]]);
    }
    m.piece[i] = m.piece[--m.live];
    m.first[i] = m.first[m.live];
    const struct use use = {piece.offset, piece.size, stream, ++m.issued[stream]};
    ck_assert_uint_lt(m.uses, USES);
    m.use[m.uses++] = use;
    struct rest *r = &m.rest[m.rests];
    if (!stays) {
        ck_assert_int_eq(pool_free(m.pool, &piece, stream, use.seq, &err), 0);
        return;
    }
    ck_assert_int_eq(pool_vacate(m.pool, &piece, stream, use.seq, &r->place, &err), 0);
    r->size = use.size;
    m.rests += r->place.size != 0;
}

static void come_back(void)
{
    if (m.rests == 0 || m.live == LIVE) {
        return;
    }
    unsigned i = (unsigned)rnd(m.rests);
    struct rest r = m.rest[i];
    struct pool_stats s;
    struct pool_ask ask = {.size = r.size,
                           .stream = (unsigned)rnd(STREAMS),
                           .tenant = 1 + (unsigned)rnd(2),
                           .place = &r.place};
    pool_stats(m.pool, &s);
    int rc = pool_alloc(m.pool, &ask, &m.piece[m.live], &err);
    if (rc != 0) {
        struct pool_piece other;
        ck_assert_int_eq(rc, ERR_DEVICE_MEMORY);
        ck_assert_msg(s.largest_free < ask.size || pool_kept(m.pool, ask.tenant) > 0,
                      "%llu bytes are free in a row: %s", LL(s.largest_free), err.text);
        ask.place = NULL; /* the attempt may have joined memory that several streams leave */
        ck_assert_msg(!m.service || pool_alloc(m.pool, &ask, &other, NULL) != 0,
                      "without its place it would have come: %s", err.text);
        m.refused++;
        return;
    }
    ck_assert(fake_usable(&m.source, &m.piece[m.live]));
    *(m.piece[m.live].offset == r.place.offset ? &m.returned : &m.elsewhere) += 1;
    m.first[m.live++] = ask.stream;
    m.rest[i] = m.rest[--m.rests];
}

static void start(unsigned run)
{
    static const uint64_t address[] = {0, 0, 4 * LIMIT, 4 * LIMIT};
    const struct pool_options o = {
        .limit = LIMIT, .address_bytes = address[run % 4], .streams = STREAMS};
    memset(&m, 0, sizeof m);
    m.state = 88172645463325252u + run;
    m.service = run < RUNS / 2;
    fake_pages_init(&m.source, LIMIT);
    m.source.pages.page_bytes = PAGE;
    m.unmap = m.source.pages.unmap;
    m.source.pages.unmap = careful_unmap;
    m.order = m.source.source.wait;
    m.source.source.wait = noted_wait;
    ck_assert_msg(pool_create(&m.source.source, &o, &m.pool, &err) == 0, "%s", err.text);
    if (run % 2 == 1) {
        const struct pool_quota quota = {
            .guaranteed = LIMIT / 4, .soft = UINT64_MAX, .hard = UINT64_MAX};
        ck_assert_int_eq(pool_set_quota(m.pool, 2, &quota, &err), 0);
    }
}

static void stop(void)
{
    for (unsigned s = 0; s < STREAMS; s++) {
        m.past[s] = UINT64_MAX;
    }
    pool_destroy(m.pool);
    fake_finish(&m.source);
}

START_TEST(what_fits_comes_back)
{
    start((unsigned)_i);
    for (unsigned n = 0; n < STEPS; n++) {
        switch (rnd(8)) {
        case 0:
        case 1:
        case 2:
            take();
            break;
        case 3:
        case 4:
            give();
            break;
        case 5:
        case 6:
            come_back();
            break;
        default:
            advance((unsigned)rnd(STREAMS));
        }
        ck_assert_msg(n % 64 != 0 || pool_check(m.pool, &err) == 0, "%s", err.text);
    }
    ck_assert_uint_gt(m.returned, 10);
    ck_assert_uint_gt(m.elsewhere, 0);
    ck_assert_uint_gt(m.refused, 0);
    stop();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("places beside pieces of any size");
    TCase *t = tcase_create("churn");
    tcase_add_loop_test(t, what_fits_comes_back, 0, (int)RUNS);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
