#include "daemon/worker/serve/snapshot.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/log.h"

#define TOUCH_BYTES (1u << 20) /* bytes touched in a step */
#define WALK_PIECES 2048u      /* pieces read in a step */
/* buffers visited in a step: few, because each lies in memory of its own */
#define NAMES          256u
#define PAGE_BYTES     4096u
#define EVENTS_AT_ONCE 64u /* events copied in one call */

_Static_assert(POOL_EVENT_KINDS <= SNAPSHOT_EVENT_KINDS, "the front knows every kind of event");
_Static_assert(POOL_EXTENT_LOST + 1 == SNAPSHOT_STATES, "the front knows every state");
_Static_assert(POOL_TIERS + POOL_CLASSES + POOL_TENANTS <= SNAPSHOT_METERS_MAX, "meters fit");

/* The pool's identity of a piece. A piece that took the place of another since the copy was made
 * has a different one. */
struct snapshot_place {
    uint64_t owner;
    uint32_t block, generation, turn;
    uint8_t object;
    uint8_t kind; /* SNAPSHOT_NOBODY: the entry is free */
};

/* ---- answers ------------------------------------------------------------------------------ */

static int answer(struct snapshot_maker *m, uint64_t nonce, const struct memfd *out,
                  const struct err *why, struct err *e)
{
    struct msg_w_snapshot msg = {.nonce = nonce, .code = why->code, .vendor = why->vendor};
    struct frame_fds fds = {.count = 0};
    if (why->code != 0) {
        msg.text = bytes_str(why->text);
    } else {
        fds = (struct frame_fds){.fd = {out->fd}, .count = 1};
    }
    int rc = channel_send(m->channel, &schema_msg_w_snapshot, &msg, &fds, e);
    m->failed = m->failed || rc != 0;
    return rc;
}

/* ---- numbers ------------------------------------------------------------------------------ */

static void fill_head(const struct snapshot_maker *m, struct snapshot_head *h)
{
    struct timespec wall = {0};
    struct pool_stats s;
    pool_stats(m->memory->pool, &s);
    (void)clock_gettime(CLOCK_REALTIME, &wall);
    h->version = SNAPSHOT_VERSION;
    h->taken_ns = clock_now_ns();
    h->wall_ns = (uint64_t)wall.tv_sec * NS_PER_S + (uint64_t)wall.tv_nsec;
#define X(name) .name = s.name,
    h->numbers = (struct snapshot_numbers){.exported = m->memory->exported,
                                           .managed = m->memory->managed,
                                           .arenas = m->arenas->bytes,
                                           SNAPSHOT_NUMBERS(X)};
#undef X
}

static struct snapshot_meter meter_of(unsigned scope, unsigned index, uint64_t what,
                                      const struct pool_meter *m)
{
    return (struct snapshot_meter){.scope = scope,
                                   .index = index,
                                   .what = what,
                                   .live = m->live,
                                   .used = m->used,
                                   .asked = m->asked,
                                   .peak = m->peak,
                                   .allocations = m->allocations,
                                   .total = m->total};
}

/* The front's key of the tenant with this number; 0 for the front's own work, which shares a
 * number with the first tenant. */
static uint64_t tenant_key(const struct memory *memory, unsigned number)
{
    const struct memory_tenant *t = memory->tenants;
    while (t != NULL && t->number != number) {
        t = t->hh.next;
    }
    return t != NULL ? t->key : number == 0 ? 0 : SNAPSHOT_TENANT_UNKNOWN;
}

/* Lists all tiers, and the classes and tenants that ever had a piece. */
static uint32_t list_meters(const struct memory *memory, struct snapshot_meter *out)
{
    struct pool *p = memory->pool;
    struct pool_stats s;
    struct pool_meter m;
    uint64_t bytes = 0;
    uint32_t n = 0;
    pool_stats(p, &s);
    for (unsigned i = 0; i < POOL_TIERS; i++) {
        out[n++] = meter_of(SNAPSHOT_TIER, i, 0, &s.tier[i]);
    }
    for (unsigned i = 0; i < POOL_CLASSES; i++) {
        pool_class_stats(p, i, &bytes, &m);
        if (m.allocations > 0) {
            out[n++] = meter_of(SNAPSHOT_CLASS, i, bytes, &m);
        }
    }
    for (unsigned i = 0; i < POOL_TENANTS; i++) {
        pool_tenant_stats(p, i, &m);
        if (m.allocations > 0) {
            out[n++] = meter_of(SNAPSHOT_TENANT, i, tenant_key(memory, i), &m);
        }
    }
    return n;
}

/* Writes the pool's events to `out`. Returns their number. */
static uint32_t list_events(const struct pool *p, struct snapshot_event *out, uint64_t *ret_first)
{
    struct pool_event some[EVENTS_AT_ONCE];
    uint64_t first = 0;
    uint32_t got = pool_events(p, 0, some, EVENTS_AT_ONCE, &first);
    uint32_t n = 0;
    *ret_first = first;
    while (got > 0 && n + got <= SNAPSHOT_EVENTS_MAX) {
        for (uint32_t i = 0; i < got; i++) {
            const struct pool_event *v = &some[i];
            out[n++] = (struct snapshot_event){.at = v->at,
                                               .size = v->size,
                                               .value = v->value,
                                               .tenant = v->tenant,
                                               .kind = v->kind,
                                               .stream = v->stream};
        }
        got = pool_events(p, *ret_first + n, some, EVENTS_AT_ONCE, &first);
    }
    return n;
}

static int out_create(struct snapshot_maker *m, uint32_t events, uint32_t pieces, struct err *e)
{
    /* pages that are never written take no memory */
    uint64_t bytes = snapshot_bytes(SNAPSHOT_METERS_MAX, events, pieces);
    return memfd_create_sealed("gpud-snapshot", (size_t)bytes, &m->out, e);
}

static int numbers_only(struct snapshot_maker *m, uint64_t nonce, struct err *e)
{
    struct memfd kept = m->out; /* the memory of the snapshot that is being made */
    struct err why = ERR_INIT;
    m->out = MEMFD_NONE;
    if (out_create(m, 0, 0, &why) == 0) {
        struct snapshot_room room = snapshot_room(m->out.data, 0, 0);
        fill_head(m, room.head);
        room.head->meters = list_meters(m->memory, room.meters);
    }
    int rc = answer(m, nonce, &m->out, &why, e);
    memfd_finish(&m->out);
    m->out = kept;
    return rc;
}

/* ---- owners of pieces ----------------------------------------------------------------------- */

/* Returns the entry of `wanted`, or a free entry. */
static struct snapshot_place *place_of(const struct snapshot_maker *m,
                                       const struct snapshot_place *wanted)
{
    uint64_t key = (uint64_t)wanted->block << 8 | wanted->object;
    uint64_t at = key * UINT64_C(0x9e3779b97f4a7c15) >> 20;
    for (;; at++) {
        struct snapshot_place *p = &m->place[at & (m->places - 1)];
        if (p->kind == SNAPSHOT_NOBODY ||
            (p->block == wanted->block && p->generation == wanted->generation &&
             p->object == wanted->object && p->turn == wanted->turn)) {
            return p;
        }
    }
}

static void place_add(struct snapshot_maker *m, const struct memory_piece *piece, uint64_t owner,
                      unsigned kind)
{
    if (piece->ref.block != NULL && piece->kind == MEMORY_POOL) {
        const struct snapshot_place p = {.owner = owner,
                                         .block = piece->pool.block,
                                         .generation = piece->pool.generation,
                                         .object = piece->pool.object,
                                         .turn = piece->pool.turn,
                                         .kind = (uint8_t)kind};
        *place_of(m, &p) = p;
    }
}

/* Visits some buffers. Returns false when there are no more. */
static bool add_names(struct snapshot_maker *m)
{
    struct buffers *t = m->buffers;
    for (unsigned i = 0; i < NAMES && t->walk != NULL; i++) {
        const struct buffer *b = t->walk;
        /* buffers are in the order of creation */
        t->walk = b->serial <= m->last_serial ? b->hh.next : NULL;
        if (b->serial <= m->last_serial) {
            place_add(m, &b->piece, b->id, SNAPSHOT_BUFFER);
        }
    }
    return t->walk != NULL;
}

static int list_places(struct snapshot_maker *m, struct err *e)
{
    uint64_t count = HASH_COUNT(m->buffers->by_id);
    for (const struct job *j = m->completion->first; j != NULL; j = j->next) {
        count += j->piece_count;
    }
    m->places = 16;
    while (m->places < 2 * count) {
        m->places *= 2;
    }
    m->place = calloc((size_t)m->places, sizeof *m->place);
    if (m->place == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a snapshot with %llu buffers",
                       (unsigned long long)count);
    }
    m->buffers->walk = m->buffers->by_id;
    m->last_serial = m->buffers->made;
    for (const struct job *j = m->completion->first; j != NULL; j = j->next) {
        for (unsigned i = 0; i < j->piece_count; i++) {
            place_add(m, &j->pieces[i], j->id, SNAPSHOT_TEMPORARY);
        }
    }
    return 0;
}

/* ---- pieces, in steps --------------------------------------------------------------------- */

static void release(struct snapshot_maker *m)
{
    free(m->copy);
    free(m->place);
    m->copy = NULL;
    m->place = NULL;
    m->buffers->walk = NULL;
    memfd_finish(&m->out);
    m->step = SNAPSHOT_IDLE;
}

/* Allocates what the pool's tables need now and some more, because they may grow until they are
 * copied. */
static int copy_alloc(struct snapshot_maker *m, struct err *e)
{
    uint64_t bytes = pool_snapshot_bytes(m->memory->pool);
    bytes += bytes / 8 + TOUCH_BYTES;
    free(m->copy);
    m->copy = malloc((size_t)bytes);
    m->copy_bytes = bytes;
    m->touched = 0;
    m->step = SNAPSHOT_TOUCH;
    return m->copy != NULL ? 0
                           : err_set(e, ERR_NOMEM, "no memory for a snapshot of %llu bytes",
                                     (unsigned long long)bytes);
}

static int take(struct snapshot_maker *m, struct err *e)
{
    struct err grown = ERR_INIT;
    pool_stamp(m->memory->pool, clock_now_ns());
    if (pool_snapshot(m->memory->pool, m->copy, m->copy_bytes, &grown) != 0) {
        return copy_alloc(m, e); /* the tables grew by more than that */
    }
    int rc = list_places(m, e);
    rc = rc == 0 ? out_create(m, SNAPSHOT_EVENTS_MAX, SNAPSHOT_PIECES_MAX, e) : rc;
    if (rc != 0) {
        return rc;
    }
    struct snapshot_room room = snapshot_room(m->out.data, 0, 0);
    fill_head(m, room.head);
    room.head->meters = list_meters(m->memory, room.meters);
    room = snapshot_room(m->out.data, room.head->meters, 0);
    room.head->events = list_events(m->memory->pool, room.events, &room.head->first_event);
    m->room = snapshot_room(m->out.data, room.head->meters, room.head->events);
    m->cursor = (struct pool_cursor){.block = 0};
    m->step = SNAPSHOT_NAMES;
    return 0;
}

static void write_piece(struct snapshot_maker *m, const struct pool_extent *x)
{
    struct snapshot_head *h = m->room.head;
    h->pieces_all++;
    if (h->pieces == SNAPSHOT_PIECES_MAX) {
        return;
    }
    struct snapshot_piece p = {.at = x->at,
                               .size = x->size,
                               .seq = x->seq,
                               .tenant = x->tenant,
                               .state = x->state,
                               .stream = x->stream,
                               .object = x->object};
    if (x->state == POOL_EXTENT_LIVE) {
        const struct snapshot_place wanted = {
            .block = x->block, .generation = x->generation, .object = x->number, .turn = x->turn};
        const struct snapshot_place *place = place_of(m, &wanted);
        p.owner = place->owner;
        p.kind = place->kind;
    }
    m->room.pieces[h->pieces++] = p;
}

/* Reads some pieces. Returns false when there are no more. */
static bool walk(struct snapshot_maker *m)
{
    struct pool_extent extent;
    for (unsigned i = 0; i < WALK_PIECES; i++) {
        if (!pool_snapshot_next(m->copy, &m->cursor, &extent)) {
            return false;
        }
        write_piece(m, &extent);
    }
    return true;
}

static void on_step(uv_idle_t *idle);

static int begin(struct snapshot_maker *m, struct err *e)
{
    int rc = copy_alloc(m, e);
    if (rc == 0) {
        (void)uv_idle_start(&m->idle, on_step);
    }
    return rc;
}

/* Answers the first request, and begins the next. */
static void end(struct snapshot_maker *m, const struct err *why)
{
    struct err e = ERR_INIT;
    struct err next = ERR_INIT;
    (void)uv_idle_stop(&m->idle);
    for (;;) {
        if (answer(m, m->ask[0], &m->out, why, &e) != 0) {
            log_say(LOG_SNAPSHOT_FAILED, "%s", e.text);
        }
        release(m);
        m->asks--;
        memmove(m->ask, m->ask + 1, m->asks * sizeof m->ask[0]);
        next = (struct err)ERR_INIT;
        if (m->asks == 0 || m->failed || begin(m, &next) == 0) {
            return;
        }
        why = &next;
    }
}

static void on_step(uv_idle_t *idle)
{
    struct snapshot_maker *m = idle->data;
    struct err e = ERR_INIT;
    if (m->step == SNAPSHOT_NAMES) {
        m->step = add_names(m) ? SNAPSHOT_NAMES : SNAPSHOT_WALK;
        return;
    }
    if (m->step == SNAPSHOT_WALK) {
        if (!walk(m)) {
            end(m, &e);
        }
        return;
    }
    uint64_t until = m->touched + TOUCH_BYTES;
    for (; m->touched < m->copy_bytes && m->touched < until; m->touched += PAGE_BYTES) {
        m->copy[m->touched] = 0;
    }
    if (m->touched >= m->copy_bytes && take(m, &e) != 0) {
        end(m, &e);
    }
}

/* ---- */

void snapshot_init(struct snapshot_maker *m, uv_loop_t *loop, struct channel *channel,
                   const struct memory *memory, struct buffers *buffers,
                   const struct completion *completion, const struct arenas *arenas)
{
    *m = (struct snapshot_maker){.channel = channel,
                                 .memory = memory,
                                 .buffers = buffers,
                                 .completion = completion,
                                 .arenas = arenas,
                                 .out = MEMFD_NONE};
    (void)uv_idle_init(loop, &m->idle); /* cannot fail */
    m->idle.data = m;
}

int snapshot_ask(struct snapshot_maker *m, uint64_t nonce, bool detail, struct err *e)
{
    struct err why = ERR_INIT;
    if (!detail) {
        return numbers_only(m, nonce, e);
    }
    if (m->asks == SNAPSHOT_ASKS) {
        (void)err_set(&why, ERR_BUSY, "%u snapshots are being made", m->asks);
        return answer(m, nonce, NULL, &why, e);
    }
    m->ask[m->asks++] = nonce;
    if (m->asks == 1 && begin(m, &why) != 0) {
        end(m, &why);
    }
    return m->failed ? err_set(e, ERR_IO, "a snapshot could not be sent") : 0;
}

void snapshot_finish(struct snapshot_maker *m)
{
    release(m);
    uv_close((uv_handle_t *)&m->idle, NULL);
}
