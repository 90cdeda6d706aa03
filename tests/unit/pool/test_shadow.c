/*
 * The pool compared with a shadow of the device's memory. For every 256 bytes of physical memory,
 * wherever they are mapped, the shadow has the piece that contains them, the last use by each
 * stream, and the tenant whose bytes they are. Random requests of several tenants with guarantees,
 * frees at past and future points of streams, pieces that give their memory up, return and move,
 * over a source that fails now and then. No two live pieces share physical bytes. No stream gets
 * memory that another stream may still use without a wait for it. Memory that may hold another
 * tenant's bytes is handed out as foreign. No page is unmapped while a stream may use it at that
 * address.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pool/clean.h"
#include "daemon/pool/move.h"
#include "daemon/pool/place.h"
#include "daemon/pool/pressure.h"
#include "daemon/pool/quota.h"
#include "tests/unit/pool/fake_source.h"
#include "tests/unit/pool/quick.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STEPS 1000u
#else
#define STEPS 3000u
#endif
#define PAGE    UINT64_C(4096) /* bytes */
#define PAGES   2048u          /* of memory, at most */
#define UNIT    POOL_ALIGN     /* bytes that the shadow tracks as one */
#define UNITS   (PAGE / UNIT)  /* in a page */
#define STREAMS 4u
#define TENANTS 5u
#define LIVE    256u
#define RESTS   24u
#define DIRTY   255u /* as a tenant: not cleared since the page was created */
#define ZEROS   254u

/* The shadow of 256 bytes of physical memory. */
struct unit {
    uint32_t owner;         /* piece + 1; 0: free */
    uint64_t used[STREAMS]; /* the last point at which each stream used them */
    uint8_t tenant;         /* whose bytes they are, or DIRTY, ZEROS */
};

struct settings {
    bool failing;
    bool moving;
    bool resting;
    unsigned streams;
    uint64_t pages;   /* of memory */
    uint64_t address; /* bytes */
    uint64_t largest; /* pages of a request */
};

struct held {
    struct pool_piece piece; /* range NULL: none */
    uint64_t tag;
    unsigned stream; /* the stream of its request */
    bool moved;      /* used by the copy */
};

static struct world {
    struct settings settings;
    struct fake_source source;
    struct pool *pool;
    struct held held[LIVE];
    unsigned count;
    struct pool_place rest[RESTS];
    unsigned rests;
    uint64_t tags;
    uint64_t issued[STREAMS], done[STREAMS];
    uint64_t now_ns;
    uint64_t state;
    struct unit unit[PAGES * UNITS];
    uint64_t (*mapped)[STREAMS]; /* by slot: the last use at that address by each stream */
    int (*unmap)(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e);
    int (*clear)(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e);
} w;

static uint64_t rnd(uint64_t below)
{
    w.state ^= w.state << 13;
    w.state ^= w.state >> 7;
    w.state ^= w.state << 17;
    return w.state % below;
}

/* Each ck_assert sends a message to the runner: too slow for every 256 bytes. */
static void must(bool good, const char *what)
{
    if (!good) {
        ck_abort_msg("%s", what);
    }
}

static struct unit *unit_at(uint64_t at)
{
    uint32_t page = w.source.slot[at / PAGE];
    must(page != 0 && page <= PAGES, "nothing is mapped there");
    return &w.unit[(page - 1) * UNITS + at % PAGE / UNIT];
}

/* ---- calls of the source ----------------------------------------------------------------------*/

static void check_unused_at(uint64_t at)
{
    for (unsigned s = 0; s < w.settings.streams; s++) {
        must(w.mapped[at / PAGE][s] <= w.done[s],
             "memory is unmapped while a stream may use it there");
    }
}

static int careful_unmap(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e)
{
    for (uint64_t o = at; o < at + bytes; o += PAGE) {
        check_unused_at(o);
    }
    return w.unmap(user, range, at, bytes, e);
}

static int seen_clear(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e)
{
    int rc = w.clear(user, range, at, bytes, e);
    for (uint64_t o = at; rc == 0 && o < at + bytes; o += UNIT) {
        struct unit *u = unit_at(o);
        must(u->owner == 0, "memory in use is cleared");
        u->tenant = ZEROS;
    }
    return rc;
}

/* ---- pieces -----------------------------------------------------------------------------------*/

/* `stream` STREAMS: no stream; all uses have to be past. */
static void check_order(const struct unit *u, unsigned stream)
{
    for (unsigned s = 0; s < w.settings.streams; s++) {
        bool open = s != stream && u->used[s] > w.done[s];
        must(!open || (stream < STREAMS && w.source.waited[stream][s] >= u->used[s]),
             "a stream got memory that another may still use");
    }
}

static void take_units(const struct pool_piece *piece, unsigned stream, uint32_t owner)
{
    bool foreign = false;
    for (uint64_t at = piece->offset; at < piece->offset + piece->size; at += UNIT) {
        struct unit *u = unit_at(at);
        must(u->owner == 0, "two pieces share physical memory");
        check_order(u, stream);
        foreign = foreign || (u->tenant != piece->tenant && u->tenant != ZEROS);
        u->owner = owner;
    }
    ck_assert_msg(!foreign || piece->foreign, "bytes of another tenant are handed out");
}

/* The stream uses all of it up to this point, after the uses of others: from now on its point
 * counts. */
static void use_units(const struct pool_piece *piece, unsigned stream, uint64_t seq)
{
    for (uint64_t at = piece->offset; at < piece->offset + piece->size; at += UNIT) {
        memset(unit_at(at)->used, 0, sizeof unit_at(at)->used);
        unit_at(at)->used[stream] = seq;
        memset(w.mapped[at / PAGE], 0, sizeof w.mapped[0]);
        w.mapped[at / PAGE][stream] = seq;
    }
}

static void give_units(const struct pool_piece *piece)
{
    for (uint64_t at = piece->offset; at < piece->offset + piece->size; at += UNIT) {
        must(unit_at(at)->owner != 0, "a free piece is freed");
        unit_at(at)->owner = 0;
    }
}

static void write_units(struct pool_piece *piece, unsigned tenant)
{
    for (uint64_t at = piece->offset; at < piece->offset + piece->size; at += UNIT) {
        unit_at(at)->tenant = (uint8_t)tenant;
    }
    piece->foreign = false;
}

static uint64_t some_size(void)
{
    switch (rnd(4)) {
    case 0:
        return 1 + rnd(PAGE / 8);
    case 1:
        return 1 + rnd(3 * PAGE);
    case 2:
        return (1 + rnd(w.settings.largest)) * PAGE;
    default:
        return 1 + rnd(w.settings.largest * PAGE);
    }
}

static void hold(struct pool_piece *piece, uint64_t tag, unsigned stream)
{
    ck_assert(fake_usable(&w.source, piece));
    take_units(piece, stream, w.count + 1);
    if (!piece->foreign || rnd(8) != 0) { /* or it is freed without being cleared */
        write_units(piece, piece->tenant);
    }
    w.held[w.count++] = (struct held){*piece, tag, stream, false};
}

static void refused(int rc, const struct err *e)
{
    ck_assert_msg(rc == ERR_DEVICE_MEMORY || rc == ERR_LIMIT, "%s", e->text);
}

static void step_alloc(const struct pool_place *place)
{
    struct err e = ERR_INIT;
    struct pool_piece piece;
    struct pool_ask ask = {.size = place != NULL ? place->size : some_size(),
                           .stream = (unsigned)rnd(w.settings.streams),
                           .tenant = (unsigned)rnd(TENANTS),
                           .tag = w.settings.moving && rnd(8) != 0 ? ++w.tags : 0,
                           .prompt = rnd(8) == 0,
                           .place = place};
    int rc = pool_alloc(w.pool, &ask, &piece, &e);
    if (rc == 0) {
        hold(&piece, ask.tag, ask.stream);
    } else {
        refused(rc, &e);
    }
}

static struct held let_go(unsigned i, unsigned *ret_stream, uint64_t *ret_seq)
{
    struct held h = w.held[i];
    w.held[i] = w.held[--w.count];
    bool used = h.moved || rnd(4) != 0; /* otherwise at a past point: no stream used it */
    *ret_stream = used && rnd(2) == 0 ? h.stream : (unsigned)rnd(w.settings.streams);
    *ret_seq = used ? ++w.issued[*ret_stream] : rnd(w.done[*ret_stream] + 1);
    give_units(&h.piece);
    return h;
}

static void used_by(const struct pool_piece *piece, unsigned stream, uint64_t seq)
{
    if (seq > w.done[stream]) {
        use_units(piece, stream, seq);
    }
}

static void step_free(void)
{
    struct err e = ERR_INIT;
    unsigned stream;
    uint64_t seq;
    struct held h = let_go((unsigned)rnd(w.count), &stream, &seq);
    used_by(&h.piece, stream, seq);
    ck_assert_msg(pool_free(w.pool, &h.piece, stream, seq, &e) == 0, "%s", e.text);
}

static void step_vacate(void)
{
    struct err e = ERR_INIT;
    struct pool_place place;
    unsigned stream;
    uint64_t seq;
    struct held h = let_go((unsigned)rnd(w.count), &stream, &seq);
    used_by(&h.piece, stream, seq);
    ck_assert_msg(pool_vacate(w.pool, &h.piece, stream, seq, &place, &e) == 0, "%s", e.text);
    if (place.size != 0) {
        w.rest[w.rests++] = place;
    }
}

static void step_return(void)
{
    unsigned i = (unsigned)rnd(w.rests);
    struct pool_place place = w.rest[i];
    unsigned count = w.count;
    if (rnd(8) != 0) {
        step_alloc(&place);
    } else {
        pool_place_leave(w.pool, &place);
        count = UINT32_MAX;
    }
    if (w.count != count) {
        w.rest[i] = w.rest[--w.rests];
    }
}

static void step_advance(void)
{
    unsigned stream = (unsigned)rnd(w.settings.streams);
    w.done[stream] += rnd(w.issued[stream] - w.done[stream] + 1);
    pool_advance(w.pool, stream, w.done[stream]);
}

static void step_other(void)
{
    struct pool_piece unclean;
    unsigned tenant = (unsigned)rnd(TENANTS);
    uint64_t some = w.settings.pages * PAGE / (2 + rnd(16));
    const struct pool_quota quota = {UINT64_MAX, UINT64_MAX, some};
    const struct pool_quota none = POOL_QUOTA_NONE;
    switch (rnd(6)) {
    case 0:
        (void)pool_defragment(w.pool, some, NULL);
        break;
    case 1:
        (void)pool_set_quota(w.pool, tenant, rnd(2) == 0 ? &quota : &none, NULL);
        break;
    case 2:
        (void)pool_trim(w.pool, some);
        break;
    case 3:
        w.now_ns += rnd(UINT64_C(1000000000));
        (void)pool_tick(w.pool, w.now_ns);
        break;
    case 4:
        pool_renumber(w.pool, POOL_TENANTS - 1);
        break;
    default:
        if (pool_unclean(w.pool, some, &unclean)) {
            bool cleared = rnd(2) == 0;
            take_units(&unclean, STREAMS, LIVE + 1);
            give_units(&unclean);
            if (cleared) {
                write_units(&unclean, ZEROS);
            }
            pool_cleared(w.pool, &unclean, cleared, 0, 0);
        }
        break;
    }
}

/* The device, asked before a refusal: it has come further than the pool knows, or does not say. */
static int reached(void *user, unsigned stream, uint64_t *ret_seq, struct err *e)
{
    (void)user;
    if (rnd(8) == 0) {
        return err_set(e, ERR_INTERNAL, "no answer");
    }
    w.done[stream] += rnd(w.issued[stream] - w.done[stream] + 1);
    *ret_seq = w.done[stream];
    return 0;
}

/* The owner copies on a stream, after all uses of the old place so far. */
static int move(void *user, struct pool_move *m, struct err *e)
{
    unsigned i = 0;
    (void)user;
    while (i < w.count && w.held[i].tag != m->tag) {
        i++;
    }
    ck_assert_uint_lt(i, w.count);
    if (rnd(8) == 0) {
        return err_set(e, ERR_BUSY, "not now");
    }
    struct held *h = &w.held[i];
    struct pool_piece to = *m->to;
    to.foreign = true; /* the copy writes all of it */
    to.tenant = h->piece.tenant;
    take_units(&to, STREAMS, i + 1);
    m->stream = (unsigned)rnd(w.settings.streams);
    m->seq = rnd(2) == 0 ? 0 : ++w.issued[m->stream];
    give_units(&h->piece);
    use_units(&h->piece, m->stream, m->seq); /* 0: all uses are past */
    use_units(&to, m->stream, m->seq);
    if (h->piece.foreign) { /* as dirty as before */
        write_units(&to, DIRTY);
    } else {
        write_units(&to, h->piece.tenant);
    }
    pool_piece_moved(&h->piece, m);
    h->moved = true;
    return 0;
}

static void step(void)
{
    uint64_t dice = rnd(100);
    if (w.settings.resting && dice < 16) {
        if (w.rests > 0 && w.count < LIVE && (rnd(2) == 0 || w.rests == RESTS)) {
            step_return();
        } else if (w.rests < RESTS && w.count > 0) {
            step_vacate();
        }
    } else if (dice < 50 && w.count < LIVE) {
        step_alloc(NULL);
    } else if (dice < 84 && w.count > 0) {
        step_free();
    } else if (dice < 95) {
        step_advance();
    } else {
        step_other();
    }
}

/* ---- a run ------------------------------------------------------------------------------------*/

#define HANDLE_SIZES 7u

static void start(uint64_t seed, const struct settings *settings)
{
    struct err e = ERR_INIT;
    const struct pool_options options = {.limit = settings->pages * PAGE,
                                         .address_bytes = settings->address,
                                         .max_blocks = 65536,
                                         .streams = settings->streams,
                                         .slice = seed % 4 < 2 ? 1 + (uint32_t)(seed % 512) * 8 : 0,
                                         .trim_age_ns = UINT64_C(1000000000)};
    const struct pool_mover mover = {.move = move};
    memset(&w, 0, sizeof w);
    w.settings = *settings;
    w.state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    w.mapped = calloc(settings->address / PAGE, sizeof *w.mapped);
    ck_assert_ptr_nonnull(w.mapped);
    for (unsigned i = 0; i < PAGES * UNITS; i++) {
        w.unit[i].tenant = DIRTY;
    }
    fake_pages_init(&w.source, settings->pages * PAGE);
    w.source.pages_most = PAGES;
    w.source.pages.page_bytes = PAGE;
    w.source.pages.handle_max = PAGE << seed % HANDLE_SIZES;
    w.source.pages.handle_share = 16;
    w.unmap = w.source.pages.unmap;
    w.source.pages.unmap = careful_unmap;
    w.clear = w.source.source.clear;
    w.source.source.clear = seen_clear;
    w.source.source.reached = seed % 3 != 0 ? reached : NULL;
    ck_assert_msg(pool_create(&w.source.source, &options, &w.pool, &e) == 0, "%s", e.text);
    pool_set_mover(w.pool, settings->moving ? &mover : NULL);
}

static void finish(void)
{
    struct pool_stats stats;
    struct err e = ERR_INIT;
    for (unsigned s = 0; s < w.settings.streams; s++) {
        w.done[s] = w.issued[s];
        pool_advance(w.pool, s, w.done[s]);
    }
    while (w.count > 0) {
        ck_assert_int_eq(pool_free(w.pool, &w.held[--w.count].piece, 0, 0, &e), 0);
    }
    ck_assert_msg(pool_check(w.pool, &e) == 0, "%s", e.text);
    (void)pool_trim(w.pool, 0);
    pool_stats(w.pool, &stats);
    ck_assert_uint_eq(stats.used, 0);
    ck_assert_uint_eq(stats.pending, 0);
    ck_assert(w.settings.failing || stats.size == 0);
    pool_destroy(w.pool);
    fake_finish(&w.source);
    free(w.mapped);
}

static void run(uint64_t seed, const struct settings *settings)
{
    struct err e = ERR_INIT;
    uint64_t steps = quick_setting("GPUD_POOL_STEPS", STEPS);
    seed += quick_setting("GPUD_POOL_SEED", 0);
    start(seed, settings);
    for (uint64_t i = 0; i < steps; i++) {
        if (settings->failing && rnd(4) == 0) {
            w.source.fail_at = w.source.calls + 1 + rnd(8);
            w.source.fail_again = w.source.fail_at + 1 + rnd(3);
        }
        step();
        ck_assert_msg(i % 16 != 0 || pool_check(w.pool, &e) == 0, "seed %llu step %llu: %s",
                      (unsigned long long)seed, (unsigned long long)i, e.text);
    }
    w.source.fail_at = w.source.fail_again = 0;
    finish();
}

/* FAULT other: a page moves while a stream still uses it at its old address
 * required: it stays mapped there until the stream has come on
 * defence: `pool/page_table.c`: view_busy
 * mutants: view-busy */
START_TEST(memory_is_shared_by_nobody)
{
    const uint64_t pages[] = {64, 256, 1024, 2000};
    struct settings s = {.failing = _i / 2 % 4 == 3,
                         .moving = _i % 2 == 1,
                         .resting = _i % 3 != 0 && _i % 5 != 0,
                         .streams = 1 + (unsigned)_i % STREAMS,
                         .pages = pages[_i / 4 % 4]};
    s.largest = s.pages / (_i % 7 < 4 ? 6 : 40);
    s.address = (_i % 5 == 4 ? 3 : 16) * s.pages * PAGE;
    run((uint64_t)_i + 1, &s);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pool against a shadow of memory");
    TCase *t = tcase_create("random");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, memory_is_shared_by_nobody, 0, 40);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
