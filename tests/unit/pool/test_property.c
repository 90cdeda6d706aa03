/*
 * The pool compared with a model: random requests of several streams and tenants over a source that
 * fails now and then, an owner that moves pieces or refuses to, pieces that give their memory up
 * and return to their addresses, limits and reservations that change. After every step: pieces do
 * not overlap, lie in existing memory and are aligned; memory that another stream may still use was
 * handed out only after a wait; the pool's own check holds.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pool/clean.h"
#include "daemon/pool/lease.h"
#include "daemon/pool/move.h"
#include "daemon/pool/place.h"
#include "daemon/pool/pressure.h"
#include "daemon/pool/quota.h"
#include "tests/unit/pool/fake_source.h"
#include "tests/unit/pool/quick.h"

/* The model compares each piece with all others; instrumented runs take ten times as long. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STEPS 1000u
#else
#define STEPS 3000u
#endif
#define STREAMS POOL_STREAMS /* at most */
#define TENANTS 3u
#define LIVE    400u
#define PAST    2000u
#define RESTS   40u

/* A range of memory and its last user. */
struct used {
    const void *range;
    uint64_t at, size;
    unsigned stream;
    uint64_t seq; /* freed at this point */
    unsigned tenant;
    uint64_t moves; /* of pages, before it was freed */
};

/* The parameters of a run. Bytes; 0: the default. */
struct settings {
    bool pages;
    bool failing;
    bool moving;
    bool repeats; /* requests in a repeating order, most of them */
    bool resting;
    unsigned streams;
    uint64_t page;
    uint64_t limit;
    uint64_t capacity;
    uint64_t address;
    unsigned bits; /* the largest request is 2^bits */
};

struct model {
    struct settings settings;
    struct fake_source source;
    struct pool *pool;
    struct pool_piece piece[LIVE];
    uint64_t tag[LIVE];   /* of each piece; 0: it does not move */
    uint64_t align[LIVE]; /* of each piece */
    unsigned count;
    uint64_t tags;
    uint64_t now_ns;
    struct used freed[PAST]; /* freed memory that may still be in use */
    unsigned freed_count;
    struct pool_place rest[RESTS]; /* of pieces without memory */
    unsigned rests;
    unsigned returned;            /* pieces that returned to their addresses */
    struct used page[FAKE_PAGES]; /* the user of a page when it was vacated; seq 0: none */
    uint64_t home[FAKE_PAGES];    /* by page: the slot where it was used last */
    uint64_t moved[FAKE_PAGES];   /* by page: number of the move to there */
    uint64_t moves;               /* of pages to other slots */
    int (*unmap)(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e);
    uint64_t asked; /* requests */
    uint64_t issued[STREAMS];
    uint64_t done[STREAMS];
    uint64_t state;
};

static struct model m;

static uint64_t rnd(uint64_t below)
{
    m.state ^= m.state << 13;
    m.state ^= m.state >> 7;
    m.state ^= m.state << 17;
    return m.state % below;
}

static uint64_t some_size(void)
{
    if (m.settings.resting && rnd(2) == 0) {
        return (1 + rnd(24)) * m.settings.page;
    }
    if (m.settings.repeats && rnd(64) != 0) {
        return (1 + m.asked++ % 37 * 29 % 64) * (m.settings.limit / 512);
    }
    uint64_t bits = 1 + rnd(m.settings.bits); /* as many requests of each magnitude */
    return 1 + rnd(UINT64_C(1) << bits);
}

static bool overlap(const void *ra, uint64_t a, uint64_t an, const void *rb, uint64_t b,
                    uint64_t bn)
{
    return ra == rb && a < b + bn && b < a + an;
}

static struct used *page_use(uint64_t at)
{
    uint32_t page = m.source.slot[at / m.source.pages.page_bytes];
    return page != 0 ? &m.page[page - 1] : NULL;
}

/* A page moved to other addresses needs a wait, too; after that its new user counts. */
static void check_pages(const struct pool_piece *piece, unsigned stream, bool taken)
{
    uint64_t bytes = m.source.pages.page_bytes;
    for (uint64_t at = piece->offset / bytes * bytes;
         m.settings.resting && at < piece->offset + piece->size; at += bytes) {
        struct used *u = page_use(at);
        bool open = u->seq > m.done[u->stream] && u->stream != stream;
        ck_assert_msg(!open || (stream < STREAMS && m.source.waited[stream][u->stream] >= u->seq),
                      "stream %u may still use a page that stream %u got", u->stream, stream);
        u->seq = taken ? 0 : u->seq;
    }
}

/* With one stream: no page is unmapped that the stream may still use. */
static int careful_unmap(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e)
{
    for (unsigned i = 0; m.settings.streams == 1 && i < m.freed_count; i++) {
        const struct used *u = &m.freed[i];
        ck_assert_msg(u->seq <= m.done[0] || at >= u->at + u->size || at + bytes <= u->at,
                      "memory in use is unmapped");
    }
    return m.unmap(user, range, at, bytes, e);
}

/* Where pages are mapped at several places, one may have been used elsewhere since. Its user there
 * was ordered after this one, which says nothing any more. */
static bool used_elsewhere(const struct used *u, const struct pool_piece *piece)
{
    uint64_t bytes = m.settings.page;
    uint64_t from = (u->at > piece->offset ? u->at : piece->offset) / bytes;
    uint64_t end = u->at + u->size < piece->offset + piece->size ? u->at + u->size
                                                                 : piece->offset + piece->size;
    bool elsewhere = m.settings.pages;
    for (uint64_t slot = from; elsewhere && slot * bytes < end; slot++) {
        elsewhere = m.moved[m.source.slot[slot] - 1] > u->moves;
    }
    return elsewhere;
}

static void note_homes(const struct pool_piece *piece)
{
    uint64_t bytes = m.settings.page;
    for (uint64_t slot = piece->offset / bytes;
         m.settings.pages && slot * bytes < piece->offset + piece->size; slot++) {
        uint32_t page = m.source.slot[slot] - 1;
        m.moved[page] = m.home[page] == slot ? m.moved[page] : ++m.moves;
        m.home[page] = slot;
    }
}

static void check_piece(const struct pool_piece *piece, unsigned stream, uint64_t asked)
{
    ck_assert_uint_ge(piece->size, asked);
    ck_assert_uint_eq(piece->offset % POOL_ALIGN, 0);
    ck_assert(fake_usable(&m.source, piece));
    for (unsigned i = 0; i < m.count; i++) {
        const struct pool_piece *o = &m.piece[i];
        ck_assert_msg(
            !overlap(o->range, o->offset, o->size, piece->range, piece->offset, piece->size),
            "a piece was handed out twice");
    }
    for (unsigned i = 0; i < m.freed_count; i++) {
        const struct used *u = &m.freed[i];
        if (u->stream != stream && u->seq > m.done[u->stream] &&
            overlap(u->range, u->at, u->size, piece->range, piece->offset, piece->size) &&
            !used_elsewhere(u, piece)) {
            ck_assert_msg(stream < STREAMS && m.source.waited[stream][u->stream] >= u->seq,
                          "stream %u may still use what stream %u got", u->stream, stream);
        }
    }
}

/* The new user of memory is ordered after the earlier ones: from now on its own point counts. */
static void forget_range(const struct pool_piece *piece)
{
    uint64_t end = piece->offset + piece->size;
    for (unsigned i = m.freed_count; i-- > 0;) {
        struct used u = m.freed[i];
        if (!overlap(u.range, u.at, u.size, piece->range, piece->offset, piece->size)) {
            continue;
        }
        m.freed[i] = m.freed[--m.freed_count];
        struct used tail = u;
        if (u.at + u.size > end) {
            tail.at = end;
            tail.size = u.at + u.size - end;
            m.freed[m.freed_count++] = tail;
        }
        if (u.at < piece->offset) {
            u.size = piece->offset - u.at;
            m.freed[m.freed_count++] = u;
        }
    }
}

static void forget_past(void)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < m.freed_count; i++) {
        if (m.freed[i].seq > m.done[m.freed[i].stream]) {
            m.freed[kept++] = m.freed[i];
        }
    }
    m.freed_count = kept;
}

static void add_past(const struct pool_piece *piece, unsigned stream, uint64_t seq)
{
    ck_assert_uint_lt(m.freed_count, PAST);
    m.freed[m.freed_count++] = (struct used){piece->range, piece->offset, piece->size, stream,
                                             seq,          piece->tenant, m.moves};
}

static void keep_piece(const struct pool_piece *piece, const struct pool_ask *ask)
{
    check_piece(piece, ask->stream, ask->size);
    check_pages(piece, ask->stream, true);
    note_homes(piece);
    forget_range(piece);
    m.tag[m.count] = ask->tag;
    m.align[m.count] = ask->align != 0 ? ask->align : POOL_ALIGN;
    ck_assert_uint_eq(piece->offset % m.align[m.count], 0);
    m.piece[m.count++] = *piece;
}

/* Mostly none, else any power of two up to a page. */
static uint64_t some_align(void)
{
    unsigned powers =
        m.settings.pages ? (unsigned)__builtin_ctzll(m.settings.page / POOL_ALIGN) : 0;
    return rnd(4) != 0 ? 0 : POOL_ALIGN << rnd(powers + 1);
}

static void step_alloc(void)
{
    struct err e = ERR_INIT;
    struct pool_piece piece;
    struct pool_ask ask = {.size = some_size(),
                           .stream = (unsigned)rnd(m.settings.streams),
                           .tenant = (unsigned)rnd(TENANTS),
                           .tag = m.settings.moving && rnd(8) != 0 ? ++m.tags : 0,
                           .align = some_align(),
                           .reserved = rnd(4) == 0};
    int rc = pool_alloc(m.pool, &ask, &piece, &e);
    if (rc == 0) {
        keep_piece(&piece, &ask);
    } else {
        bool expected = rc == ERR_DEVICE_MEMORY || (rc == ERR_LIMIT && m.settings.moving);
        ck_assert_msg(expected, "%s", e.text);
    }
}

/* A piece gives its memory up. */
static void step_rest(void)
{
    struct err e = ERR_INIT;
    struct pool_place place;
    unsigned i = (unsigned)rnd(m.count);
    unsigned stream = (unsigned)rnd(m.settings.streams);
    struct pool_piece copy = m.piece[i];
    uint64_t seq = rnd(4) == 0 ? m.done[stream] : ++m.issued[stream];
    ck_assert_msg(pool_vacate(m.pool, &m.piece[i], stream, seq, &place, &e) == 0, "%s", e.text);
    m.piece[i] = m.piece[--m.count];
    m.tag[i] = m.tag[m.count];
    m.align[i] = m.align[m.count];
    add_past(&copy, stream, seq);
    if (place.size == 0) {
        return;
    }
    ck_assert_uint_eq(place.offset, copy.offset);
    ck_assert_uint_eq(place.size, copy.size);
    for (uint64_t at = place.offset; at < place.offset + place.size; at += m.settings.page) {
        *page_use(at) = (struct used){.stream = stream, .seq = seq};
    }
    m.rest[m.rests++] = place;
}

/* Lets a piece return, or gives its place up. */
static void step_return(void)
{
    struct err e = ERR_INIT;
    struct pool_piece piece;
    unsigned i = (unsigned)rnd(m.rests);
    struct pool_place place = m.rest[i];
    if (rnd(8) == 0) {
        pool_place_leave(m.pool, &place);
        m.rest[i] = m.rest[--m.rests];
        return;
    }
    const struct pool_ask ask = {.size = place.size,
                                 .stream = (unsigned)rnd(m.settings.streams),
                                 .tenant = (unsigned)rnd(TENANTS),
                                 .tag = m.settings.moving ? ++m.tags : 0,
                                 .place = &place};
    int rc = pool_alloc(m.pool, &ask, &piece, &e);
    if (rc == 0) {
        m.returned += piece.offset == place.offset;
        m.rest[i] = m.rest[--m.rests];
        keep_piece(&piece, &ask);
        return;
    }
    ck_assert_msg(rc == ERR_DEVICE_MEMORY || (rc == ERR_LIMIT && m.settings.moving), "%s", e.text);
}

static void step_free(void)
{
    struct err e = ERR_INIT;
    unsigned i = (unsigned)rnd(m.count);
    unsigned stream = (unsigned)rnd(m.settings.streams);
    struct pool_piece copy = m.piece[i];
    struct pool_piece again = copy;
    uint64_t seq = rnd(4) == 0 ? m.done[stream] : ++m.issued[stream];
    ck_assert_msg(pool_free(m.pool, &m.piece[i], stream, seq, &e) == 0, "%s", e.text);
    ck_assert(m.piece[i].range == NULL);
    m.piece[i] = m.piece[--m.count];
    m.tag[i] = m.tag[m.count];
    m.align[i] = m.align[m.count];
    add_past(&copy, stream, seq);
    if (rnd(8) == 0) {
        ck_assert_int_eq(pool_free(m.pool, &again, stream, seq, &e), ERR_BAD_HANDLE);
    }
}

static void step_advance(void)
{
    unsigned stream = (unsigned)rnd(m.settings.streams);
    m.done[stream] += rnd(m.issued[stream] - m.done[stream] + 1);
    pool_advance(m.pool, stream, m.done[stream]);
    forget_past();
}

/* The device, asked before a refusal: it has come further than the pool knows, or does not say. */
static int reached(void *user, unsigned stream, uint64_t *ret_seq, struct err *e)
{
    (void)user;
    if (rnd(8) == 0) {
        return err_set(e, ERR_INTERNAL, "no answer");
    }
    m.done[stream] += rnd(m.issued[stream] - m.done[stream] + 1);
    *ret_seq = m.done[stream];
    forget_past();
    return 0;
}

/* The owner of the pieces: some may not move, the others are copied at once or on a stream. */
static int move(void *user, struct pool_move *move, struct err *e)
{
    unsigned i = 0;
    (void)user;
    while (i < m.count && m.tag[i] != move->tag) {
        i++;
    }
    ck_assert_uint_lt(i, m.count);
    ck_assert(m.piece[i].range == move->from->range && m.piece[i].offset == move->from->offset);
    ck_assert_uint_eq(m.piece[i].size, move->to->size);
    if (rnd(8) == 0) {
        return err_set(e, ERR_BUSY, "not now");
    }
    const struct pool_piece *to = move->to;
    ck_assert_uint_eq(to->offset % m.align[i], 0);
    check_piece(to, STREAMS, 1); /* no stream: every use has to be past */
    check_pages(to, STREAMS, false);
    move->stream = (unsigned)rnd(m.settings.streams);
    move->seq = rnd(2) == 0 ? 0 : ++m.issued[move->stream];
    note_homes(to);
    add_past(&m.piece[i], move->stream, move->seq);
    pool_piece_moved(&m.piece[i], move);
    return 0;
}

/* The budget is lowered for a while. */
static void step_lease(void)
{
    struct pool_lease l;
    uint64_t budget = m.settings.limit - (rnd(2) == 0 ? rnd(m.settings.limit / 4) : 0);
    if (rnd(4) == 0) {
        (void)pool_lease_set(m.pool, budget, m.now_ns + rnd(UINT64_C(1000000000)), NULL);
    }
    uint64_t most = rnd(m.settings.limit);
    uint64_t size = m.source.taken;
    uint64_t given = pool_lease_tick(m.pool, most, m.now_ns);
    pool_lease(m.pool, &l);
    ck_assert_uint_eq(m.source.taken + given, size);
    ck_assert(m.source.blocks_made > 0 || given < most + m.source.pages.handle_max);
    ck_assert_int_eq(l.missing == 0, l.state == POOL_LEASE_HELD);
    ck_assert(l.missing > 0 || m.source.taken <= l.budget);
}

/* Other calls of an owner. */
static void step_other(void)
{
    unsigned tenant = (unsigned)rnd(TENANTS);
    uint64_t some = m.settings.limit / (2 + rnd(8));
    struct pool_quota quota = {some * 4, some, rnd(4) == 0 ? some / 4 : 0};
    const struct pool_quota none = POOL_QUOTA_NONE;
    struct pool_piece unclean;
    switch (rnd(7)) {
    case 6:
        step_lease();
        break;
    case 0:
        (void)pool_defragment(m.pool, some, NULL);
        break;
    case 1:
        (void)pool_set_quota(m.pool, tenant, rnd(2) == 0 ? &quota : &none, NULL);
        break;
    case 2:
        (void)pool_reserve(m.pool, tenant, some / 8, NULL);
        break;
    case 3:
        pool_unreserve(m.pool, tenant, rnd(2) == 0 ? some : UINT64_MAX);
        break;
    case 4:
        m.now_ns += rnd(UINT64_C(1000000000));
        (void)pool_tick(m.pool, m.now_ns);
        break;
    default:
        if (pool_unclean(m.pool, some, &unclean)) {
            check_piece(&unclean, STREAMS, 1);
            pool_cleared(m.pool, &unclean, rnd(2) == 0, 0, 0);
        }
        break;
    }
}

static void step_place(void)
{
    if (m.rests > 0 && m.count < LIVE && (rnd(2) == 0 || m.rests == RESTS)) {
        step_return();
    } else if (m.rests < RESTS && m.count > 0 && m.freed_count < PAST - LIVE) {
        step_rest();
    }
}

static void step(void)
{
    if (m.settings.moving && rnd(16) == 0 && m.freed_count < PAST - 2 * LIVE) {
        step_other();
        return;
    }
    if (m.settings.resting && rnd(3) == 0) {
        step_place();
        return;
    }
    uint64_t dice = rnd(100);
    if (dice < 48 && m.count < LIVE) {
        step_alloc();
    } else if (dice < 90 && m.count > 0 && m.freed_count < PAST - LIVE) {
        step_free();
    } else if (dice < 98) {
        step_advance();
    } else {
        (void)pool_trim(m.pool, rnd(64) << 20);
    }
}

#define HANDLE_SIZES 7u

static void start(uint64_t seed, const struct settings *settings)
{
    struct err e = ERR_INIT;
    struct pool_options options = {.limit = settings->limit,
                                   .address_bytes = settings->address,
                                   .streams = settings->streams,
                                   .slice = seed % 2 == 0 ? 1 + (uint32_t)(seed % 512) * 8 : 0,
                                   .trim_age_ns = UINT64_C(1000000000)};
    const struct pool_mover mover = {.move = move};
    memset(&m, 0, sizeof m);
    m.settings = *settings;
    m.state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    (settings->pages ? fake_pages_init : fake_blocks_init)(&m.source, settings->capacity);
    m.source.pages.page_bytes = settings->page;
    m.source.pages.handle_max = settings->page << seed % HANDLE_SIZES;
    m.source.pages.handle_share = 16;
    m.unmap = m.source.pages.unmap;
    m.source.pages.unmap = careful_unmap;
    m.source.source.reached = seed % 3 == 0 ? reached : NULL;
    ck_assert_msg(pool_create(&m.source.source, &options, &m.pool, &e) == 0, "%s", e.text);
    pool_set_mover(m.pool, settings->moving ? &mover : NULL);
}

static void run(uint64_t seed, const struct settings *settings, uint64_t steps)
{
    struct err e = ERR_INIT;
    bool failing = settings->failing;
    steps = quick_setting("GPUD_POOL_STEPS", steps);
    seed += quick_setting("GPUD_POOL_SEED", 0);
    start(seed, settings);
    for (uint64_t i = 0; i < steps; i++) {
        if (failing && rnd(4) == 0) {
            m.source.fail_at = m.source.calls + 1 + rnd(8);
            m.source.fail_again = m.source.fail_at + 1 + rnd(3);
        }
        step();
        if (i % 16 == 0) {
            ck_assert_msg(pool_check(m.pool, &e) == 0, "seed %llu step %llu: %s",
                          (unsigned long long)seed, (unsigned long long)i, e.text);
        }
    }
    m.source.fail_again = 0;
    m.source.fail_at = 0;
    while (m.count > 0) {
        ck_assert_int_eq(pool_free(m.pool, &m.piece[--m.count], 0, 0, &e), 0);
    }
    for (unsigned s = 0; s < settings->streams; s++) {
        m.done[s] = m.issued[s];
        pool_advance(m.pool, s, m.done[s]);
    }
    ck_assert(!settings->resting || m.returned > 10);
    ck_assert_msg(pool_check(m.pool, &e) == 0, "seed %llu: %s", (unsigned long long)seed, e.text);
    struct pool_stats stats;
    (void)pool_trim(m.pool, 0);
    pool_stats(m.pool, &stats);
    ck_assert_uint_eq(stats.used, 0);
    ck_assert_uint_eq(stats.asked, 0);
    ck_assert_uint_eq(stats.pending, 0);
    if (!failing) {
        ck_assert_uint_eq(stats.size, 0); /* all memory went back */
        ck_assert(!settings->repeats || stats.remaps > 100);
    }
    pool_destroy(m.pool);
    fake_finish(&m.source);
}

#define MIB UINT64_C(1048576)

static const struct settings usual = {
    .streams = 4, .page = FAKE_PAGE, .limit = 512 * MIB, .capacity = 448 * MIB, .bits = 25};

START_TEST(pages_behave)
{
    struct settings s = usual;
    s.pages = true;
    s.failing = _i % 2 == 1;
    run((uint64_t)_i / 2 + 1, &s, STEPS);
}
END_TEST

START_TEST(blocks_behave)
{
    struct settings s = usual;
    s.failing = _i % 2 == 1;
    run((uint64_t)_i / 2 + 1, &s, STEPS);
}
END_TEST

/* Repeated requests return to their addresses. */
START_TEST(pools_that_recall_behave)
{
    struct settings s = usual;
    s.pages = s.repeats = true;
    s.failing = _i % 2 == 1;
    s.moving = _i % 4 >= 2;
    s.page = 64 * 1024;
    s.limit = s.capacity = (_i % 3 == 0 ? 48 : 24) * MIB;
    s.address = _i % 5 == 4 ? 3 * s.limit : 0; /* few enough addresses to be used up */
    s.bits = 22 + (unsigned)_i % 2;
    s.streams = 1 + (unsigned)_i % 3;
    run((uint64_t)_i + 300, &s, STEPS);
}
END_TEST

/* Pieces of whole pages leave and return. */
START_TEST(pieces_come_back)
{
    struct settings s = usual;
    s.pages = s.repeats = s.resting = true;
    s.failing = _i % 2 == 1;
    s.moving = _i % 4 >= 2;
    s.page = 64 * 1024;
    s.limit = s.capacity = (_i % 3 == 0 ? 24 : 8) * MIB;
    s.address = _i % 5 == 4 ? 3 * s.limit : 0; /* few enough addresses that places are given up */
    s.bits = 22;
    s.streams = 1 + (unsigned)_i % 3;
    run((uint64_t)_i + 400, &s, STEPS);
}
END_TEST

/* Little enough memory that pieces move all the time. */
START_TEST(moving_pools_behave)
{
    struct settings s = usual;
    s.pages = _i % 3 != 0;
    s.failing = _i % 2 == 1;
    s.moving = true;
    s.limit = s.capacity = 48 * MIB;
    s.bits = 22 + (unsigned)_i % 3;
    s.streams = 1 + (unsigned)_i % 4;
    run((uint64_t)_i + 200, &s, STEPS);
}
END_TEST

START_TEST(unusual_pools_behave)
{
    struct settings s = usual;
    s.pages = true;
    s.failing = _i % 2 == 1;
    switch (_i / 2) {
    case 0: /* few enough addresses to run out before memory does */
        s.address = s.limit + s.limit / 5;
        break;
    case 1:
        s.page = 4096;
        s.limit = s.capacity = 16 * MIB;
        s.address = 64 * MIB;
        s.bits = 20;
        break;
    case 2:
        s.page = 64 * 1024;
        s.limit = s.capacity = 64 * MIB;
        s.bits = 22;
        break;
    case 3: /* a request may exceed all memory */
        s.limit = 8 * MIB;
        s.address = 10 * MIB;
        s.bits = 24;
        break;
    case 4:
        s.streams = 1;
        break;
    case 5:
        s.streams = POOL_STREAMS;
        break;
    default: /* small requests only: slabs of all streams and classes in little memory */
        s.streams = POOL_STREAMS;
        s.limit = 32 * MIB;
        s.bits = 16;
        break;
    }
    run((uint64_t)_i + 100, &s, STEPS / 2);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pool against a model");
    TCase *t = tcase_create("random");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, pages_behave, 0, 16);
    tcase_add_loop_test(t, blocks_behave, 0, 10);
    tcase_add_loop_test(t, pools_that_recall_behave, 0, 24);
    tcase_add_loop_test(t, pieces_come_back, 0, 14);
    tcase_add_loop_test(t, moving_pools_behave, 0, 24);
    tcase_add_loop_test(t, unusual_pools_behave, 0, 14);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
