#include "daemon/worker/spill.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <utlist.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/saturate.h"
#include "daemon/pool/move.h"
#include "daemon/worker/prospect.h"
#include "daemon/worker/shortage.h"

#define CHUNK_BYTES  (UINT64_C(16) << 20) /* the arena grows by it; no piece is larger */
#define PACK_BYTES   (UINT64_C(64) << 20) /* moved at once on the device, to put together */
#define CLEAR_OUT_NS (2 * NS_PER_S)       /* copies that take longer are not waited for */

/* Where a buffer's bytes are in the arena. */
struct spill_copy {
    unsigned tenant; /* whose number it is counted for while a buffer has it */
    unsigned count;
    struct pool_piece part[];
};

/* A copy under way. */
struct spill_move {
    struct buffer *buffer;   /* in use */
    bool out;                /* from the device */
    bool within;             /* from one place on the device to another */
    bool given_up;           /* half of it was enqueued; the buffer is as it was before */
    struct spill_copy *copy; /* owned: what it comes back from; NULL: none, or it goes there */
    struct memfd sealed;     /* the same, of a sealed buffer */
    struct backend_marker *marker;
    struct timeline_point point;
    struct spill_move *prev, *next;
};

/* ---- the arena ------------------------------------------------------------------------------*/

static int pin(void *user, void *memory, uint64_t bytes, struct err *e)
{
    struct device *dev = user;
    return dev->b->memory->register_host(dev->d, memory, (size_t)bytes, e);
}

static void unpin(void *user, void *memory, uint64_t bytes)
{
    struct device *dev = user;
    (void)bytes;
    dev->b->memory->unregister_host(dev->d, memory);
}

static uint64_t part_bytes(const struct buffer *b, unsigned i)
{
    uint64_t rest = b->size - i * CHUNK_BYTES;
    return rest < CHUNK_BYTES ? rest : CHUNK_BYTES;
}

static void copy_free(struct spill *s, struct spill_copy *copy)
{
    for (unsigned i = 0; i < copy->count; i++) {
        (void)pool_free(s->arena, &copy->part[i], 0, 0, NULL);
    }
    free(copy);
}

/* Whose bytes were there before does not matter: all of it is written before it is read. */
static int copy_make(struct spill *s, const struct buffer *b, struct spill_copy **ret_copy,
                     struct err *e)
{
    unsigned count = (unsigned)((b->size + CHUNK_BYTES - 1) / CHUNK_BYTES);
    struct spill_copy *copy = calloc(1, sizeof *copy + count * sizeof copy->part[0]);
    if (copy == NULL) {
        return err_set(e, ERR_NOMEM, "a copy of buffer %" PRIu64, b->id);
    }
    int rc = 0;
    while (rc == 0 && copy->count < count) {
        const struct pool_ask ask = {.size = part_bytes(b, copy->count)};
        rc = pool_alloc(s->arena, &ask, &copy->part[copy->count], e);
        copy->count += rc == 0;
    }
    if (rc != 0) {
        copy_free(s, copy);
        return rc;
    }
    *ret_copy = copy;
    return 0;
}

/* It lies on the host: in all, and of the number that its tenant has now. */
static void count(struct spill *s, struct buffer *b, struct spill_copy *copy)
{
    struct memory *m = &s->device->memory;
    b->spilled = copy;
    copy->tenant = memory_number(m, b->tenant);
    s->bytes += b->size;
    memory_spilled(m, copy->tenant, b->size, true);
}

/* It does no more. The copy is the caller's. */
static struct spill_copy *uncount(struct spill *s, struct buffer *b)
{
    struct spill_copy *copy = b->spilled;
    b->spilled = NULL;
    s->bytes -= b->size;
    memory_spilled(&s->device->memory, copy->tenant, b->size, false);
    return copy;
}

static void forget(void *data, struct buffer *b)
{
    struct spill *s = data;
    copy_free(s, uncount(s, b));
}

static int arena_init(struct spill *s, struct err *e)
{
    bool pins = s->device->b->memory->register_host != NULL;
    const struct pool_host_options host = {.chunk = CHUNK_BYTES,
                                           .pin = pins ? pin : NULL,
                                           .unpin = pins ? unpin : NULL,
                                           .user = s->device};
    const struct pool_options options = {.limit = s->limit, .streams = 1, .max_blocks = 1u << 20};
    int rc = pool_host_init(&s->host, &host, e);
    rc = rc == 0 ? pool_create(&s->host.source, &options, &s->arena, e) : rc;
    if (rc == 0) {
        struct err why = ERR_INIT;
        if (pool_warm(s->arena, CHUNK_BYTES < s->limit ? CHUNK_BYTES : s->limit, &why) != 0) {
            log_warn("host memory for spilled buffers: %s", why.text); /* it may be there later */
        }
    }
    return rc == 0 ? 0 : err_wrap(e, "host memory for spilled buffers");
}

static int move_within(void *user, struct pool_move *move, struct err *e);
static bool moving_helps(void *data);
static bool clear_out(void *data, uint64_t tenant, uint64_t bytes, bool own);

static void limit_is(struct spill *s, uint64_t limit)
{
    struct pool_stats stats;
    pool_stats(s->device->memory.pool, &stats);
    s->limit = limit;
    s->buffers->room = limit == 0 ? 0 : sat_add(stats.limit, limit);
}

int spill_init(struct spill *s, struct device *device, struct buffers *buffers, uint64_t limit,
               struct err *e)
{
    struct pool_stats stats;
    *s = (struct spill){.device = device, .buffers = buffers, .packed = UINT64_MAX};
    const struct pool_mover mover = {.user = s, .move = move_within};
    pool_set_mover(device->memory.pool, &mover);
    pool_stats(device->memory.pool, &stats);
    buffers->most = stats.limit;
    if (device->info.max_alloc != 0 && device->info.max_alloc < buffers->most) {
        buffers->most = device->info.max_alloc;
    }
    limit_is(s, limit);
    buffers->forget = forget;
    buffers->soon = moving_helps;
    buffers->clear_out = clear_out;
    buffers->data = s;
    return limit == 0 ? 0 : arena_init(s, e);
}

void spill_set_limit(struct spill *s, uint64_t limit)
{
    if (limit == s->limit) {
        return;
    }
    struct err e = ERR_INIT;
    limit_is(s, limit);
    if (s->arena != NULL) {
        pool_set_limit(s->arena, limit);
    } else if (arena_init(s, &e) != 0) {
        log_warn("nothing moves to the host: %s", e.text);
        limit_is(s, 0);
    }
    s->device->memory.changes++; /* who waits for room may find it, or be told otherwise */
}

void spill_finish(struct spill *s)
{
    pool_destroy(s->arena);
    s->arena = NULL;
}

/* ---- copies ---------------------------------------------------------------------------------*/

/* Parts in turn, between the buffer's memory and the arena. */
static int copy_enqueue(const struct spill *s, const struct buffer *b,
                        const struct spill_copy *copy, bool out, struct err *e)
{
    const struct backend_stream_ops *ops = s->device->b->stream;
    struct backend_ref at = b->piece.ref;
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < copy->count; i++) {
        void *host = pool_host_at(&copy->part[i]);
        uint64_t bytes = part_bytes(b, i);
        rc = out ? ops->read(s->device->service, host, at, bytes, e)
                 : ops->write(s->device->service, at, host, bytes, e);
        at.offset += bytes;
    }
    return rc;
}

/* What was enqueued and has no end cannot be waited for: then the device is as good as lost. */
static int move_begin(struct spill *s, struct spill_move *m, struct buffer *b, struct err *e)
{
    int rc = device_mark(s->device, s->device->service, &m->marker, e);
    if (rc != 0) {
        e->code = ERR_DEVICE_LOST;
        return err_wrap(e, "marking the end of a copy of buffer %" PRIu64, b->id);
    }
    m->buffer = b;
    memory_mark(&s->device->memory, memory_service(&s->device->memory), m->marker, &m->point);
    buffer_use(b);
    DL_APPEND(s->first, m);
    return 0;
}

/* Its memory is others' after what is on the service stream now. */
static void leave(struct spill *s, struct buffer *b)
{
    buffer_pin(s->buffers, b); /* out of the list */
    memory_vacate(&s->device->memory, &b->piece, &b->place);
    buffer_unpin(s->buffers, b);
    s->outs++;
}

/* < 0: it stays; ERR_DEVICE_LOST: nobody knows. */
static int move_out(struct spill *s, struct buffer *b, struct err *e)
{
    if (buffer_keeps_itself(b)) {
        leave(s, b);
        return 0;
    }
    struct spill_copy *copy = NULL;
    struct spill_move *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return err_set(e, ERR_NOMEM, "a copy of buffer %" PRIu64, b->id);
    }
    *m = (struct spill_move){.out = true, .sealed = MEMFD_NONE};
    int rc = s->arena == NULL ? ERR_LIMIT : copy_make(s, b, &copy, e);
    if (rc != 0) {
        free(m);
        return rc;
    }
    struct err why = ERR_INIT;
    rc = copy_enqueue(s, b, copy, true, &why);
    int marked = move_begin(s, m, b, e); /* also behind what failed half-way */
    if (marked != 0) {
        return marked;
    }
    if (rc != 0) {
        m->copy = copy;
        m->given_up = true;
        *e = why;
        return rc;
    }
    count(s, b, copy);
    s->leaving += b->size;
    leave(s, b);
    return 0;
}

/* Where the bytes come from, and the commands that bring them. */
static int fetch(struct spill *s, struct spill_move *m, struct buffer *b, struct err *e)
{
    struct memory *memory = &s->device->memory;
    if (b->content == BUFFER_ZEROS) {
        b->piece.dirty = true;
    }
    int rc = memory_clear(memory, &b->piece, memory_service(memory), e);
    if (rc != 0 || b->content != BUFFER_BYTES) {
        return rc;
    }
    if (b->spilled != NULL) {
        return copy_enqueue(s, b, b->spilled, false, e);
    }
    int fd = dup(b->sealed_fd);
    if (fd < 0) {
        return err_errno(e, ERR_IO, "the host copy of buffer %" PRIu64, b->id);
    }
    rc = memfd_adopt(fd, (size_t)b->size, false, &m->sealed, e);
    if (rc != 0) {
        (void)close(fd);
        return rc;
    }
    return s->device->b->stream->write(s->device->service, b->piece.ref, m->sealed.data, b->size,
                                       e);
}

/* Has what used its memory before done so, for all streams? */
static bool settled(const struct spill *s, const struct buffer *b)
{
    return !b->piece.waits && !memory_service_busy(&s->device->memory);
}

/* It has its piece. What cannot be brought is as before, and the piece goes. */
static int move_back(struct spill *s, struct buffer *b, struct err *e)
{
    if (b->content == BUFFER_UNDEFINED && !b->piece.dirty && settled(s, b)) {
        return 0;
    }
    struct spill_move *m = calloc(1, sizeof *m);
    if (m == NULL) {
        memory_free(&s->device->memory, &b->piece);
        return err_set(e, ERR_NOMEM, "a copy of buffer %" PRIu64, b->id);
    }
    m->sealed = MEMFD_NONE;
    struct err why = ERR_INIT;
    int rc = fetch(s, m, b, &why);
    int marked = move_begin(s, m, b, e);
    if (marked != 0) {
        return marked;
    }
    if (rc != 0) {
        m->given_up = true;
        memory_vacate(&s->device->memory, &b->piece, &b->place);
        *e = why;
        return rc;
    }
    b->filling = m->marker;
    if (b->spilled != NULL) {
        m->copy = uncount(s, b);
    }
    s->backs++;
    return 0;
}

/* Nobody holds the address of one that no job or transfer has pinned: what will use it reads the
 * address then, and waits for what fills it. */
static bool may_move(const struct spill *s, const struct buffer *b)
{
    return s->within < SPILL_MOVES_MAX && b->listed && b->filling == NULL && !b->piece.dirty &&
           !b->broken && !b->arriving;
}

/* The pool wants it elsewhere (move.h). All it held is in the order of the service stream or past;
 * what it leaves is others' after the copy. */
static int move_within(void *user, struct pool_move *move, struct err *e)
{
    struct spill *s = user;
    struct buffer *b = (struct buffer *)(uintptr_t)move->tag; /* buffer_tag */
    const struct backend_ref to = {.block = move->to->range, .offset = move->to->offset};
    struct err why = ERR_INIT;
    if (!may_move(s, b)) {
        return err_set(e, ERR_BUSY, "buffer %" PRIu64 " is in use", b->id);
    }
    struct spill_move *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return err_set(e, ERR_NOMEM, "moving buffer %" PRIu64, b->id);
    }
    *m = (struct spill_move){.within = true, .sealed = MEMFD_NONE};
    int rc = s->device->b->stream->copy(s->device->service, to, b->piece.ref, move->to->size, &why);
    if (rc == 0) {
        rc = move_begin(s, m, b, &why);
        s->device->memory.hung = s->device->memory.hung || rc != 0;
    }
    if (rc != 0) {
        free(m);
        if (!s->stuck) { /* many may follow */
            log_warn("buffer %" PRIu64 " stays where it is: %s", b->id, why.text);
        }
        s->stuck = true;
        return err_set(e, rc, "%s", why.text);
    }
    s->stuck = false;
    s->within++;
    b->filling = m->marker;
    move->stream = m->point.stream;
    move->seq = m->point.seq;
    memory_moved(&b->piece, move);
    return 0;
}

/* What was to come lies on the host still. Jobs that have the buffer on the device fail; when they
 * are over it is there no more, and the next one brings it anew. */
static void tear(struct spill *s, struct spill_move *m)
{
    struct buffer *b = m->buffer;
    b->broken = true;
    b->torn = true;
    if (m->copy != NULL) {
        count(s, b, m->copy);
        m->copy = NULL;
    }
    DL_APPEND(s->torn, m);
}

static void move_free(struct spill *s, struct spill_move *m)
{
    if (m->copy != NULL) {
        copy_free(s, m->copy);
    }
    memfd_finish(&m->sealed);
    buffer_unuse(s->buffers, m->buffer);
    free(m);
}

static void move_end(struct spill *s, struct spill_move *m, const struct err *why)
{
    struct buffer *b = m->buffer;
    bool failed = why->code != 0 && !m->given_up;
    DL_DELETE(s->first, m);
    memory_passed(&s->device->memory, &m->point);
    s->device->b->marker->release(m->marker);
    s->within -= m->within;
    if (m->out) {
        s->leaving -= m->copy == NULL ? b->size : 0;
    } else if (b->filling == m->marker) {
        b->filling = NULL;
        if (why->code == 0) {
            memory_cleaned(&b->piece);
        }
    }
    if (failed) {
        log_warn("buffer %" PRIu64 ": a copy %s the device failed: %s", b->id,
                 m->within ? "on"
                 : m->out  ? "from"
                           : "to",
                 why->text);
    }
    if (failed && !m->out && (!m->within || buffer_keeps_itself(b))) {
        tear(s, m);
        return;
    }
    b->broken = b->broken || failed; /* what did not come to where it was to be is nowhere */
    move_free(s, m);
}

static void mend(struct spill *s)
{
    struct spill_move *m;
    struct spill_move *next;
    DL_FOREACH_SAFE(s->torn, m, next)
    {
        if (m->buffer->pins == 0) {
            DL_DELETE(s->torn, m);
            buffer_pin(s->buffers, m->buffer); /* out of the list */
            memory_free(&s->device->memory, &m->buffer->piece);
            buffer_unpin(s->buffers, m->buffer);
            m->buffer->broken = false;
            m->buffer->torn = false;
            move_free(s, m);
        }
    }
}

bool spill_busy(const struct spill *s)
{
    return s->first != NULL || s->torn != NULL;
}

void spill_poll(struct spill *s)
{
    struct spill_move *m;
    struct spill_move *next;
    DL_FOREACH_SAFE(s->first, m, next)
    {
        struct err e = ERR_INIT;
        enum backend_state state = s->device->b->marker->state(m->marker, &e);
        if (state != BACKEND_DONE && state != BACKEND_FAILED) {
            break; /* all are on one stream, in this order */
        }
        move_end(s, m, &e);
    }
    mend(s);
}

static bool going(const struct spill *s, const struct buffer *b)
{
    const struct spill_move *m = s->first;
    while (m != NULL && !(m->out && m->buffer == b)) {
        m = m->next;
    }
    return m != NULL;
}

static int read_sealed(const struct buffer *b, uint64_t at, void *to, uint64_t bytes, struct err *e)
{
    uint64_t got = 0;
    while (got < bytes) {
        ssize_t n =
            pread(b->sealed_fd, (uint8_t *)to + got, (size_t)(bytes - got), (off_t)(at + got));
        if (n < 0) {
            return err_errno(e, ERR_IO, "the host copy of buffer %" PRIu64, b->id);
        }
        if (n == 0) {
            return err_set(e, ERR_IO,
                           "the host copy of buffer %" PRIu64 " ends at byte %" PRIu64
                           ": it is shorter than said",
                           b->id, at + got);
        }
        got += (uint64_t)n;
    }
    return 0;
}

int spill_read(const struct spill *s, const struct buffer *b, uint64_t at, void *to, uint64_t bytes,
               struct err *e)
{
    if (going(s, b)) {
        return SPILL_LATER;
    }
    if (b->broken) {
        return err_set(e, ERR_BUFFER_LOST, "content of buffer %" PRIu64 " did not arrive", b->id);
    }
    if (b->spilled == NULL && b->sealed_fd >= 0) {
        return read_sealed(b, at, to, bytes, e);
    }
    for (uint64_t done = 0; done < bytes;) {
        uint64_t in = (at + done) % CHUNK_BYTES;
        uint64_t n = CHUNK_BYTES - in < bytes - done ? CHUNK_BYTES - in : bytes - done;
        const struct pool_piece *part =
            b->spilled != NULL ? &b->spilled->part[(at + done) / CHUNK_BYTES] : NULL;
        if (part != NULL) {
            memcpy((uint8_t *)to + done, (const uint8_t *)pool_host_at(part) + in, (size_t)n);
        } else { /* it was never written */
            memset((uint8_t *)to + done, 0, (size_t)n);
        }
        done += n;
    }
    return 0;
}

/* ---- room -----------------------------------------------------------------------------------*/

static struct pool *pool_of(const struct spill *s)
{
    return s->device->memory.pool;
}

/* Is its tenant above its soft limit now? What is free in its slabs is none of its buffers' doing.
 */
static bool over_soft(const struct spill *s, const struct buffer *b)
{
    struct pool_account a;
    pool_account(pool_of(s), b->piece.pool.tenant, &a);
    return a.meter.used > a.quota.soft;
}

/* Those not used for longest, until `wanted` bytes are on their way. Returns how many bytes; <
 * wanted: there are no more. */
static uint64_t evict_some(struct spill *s, const struct hunger *h, struct err *e)
{
    uint64_t bytes = 0;
    struct buffer *b = s->buffers->cold;
    while (b != NULL && bytes < h->wanted) {
        struct buffer *next = b->cold_next;
        uint64_t size = b->piece.pool.size;
        struct err why = ERR_INIT;
        bool goes = !b->broken && (!h->soft || over_soft(s, b)) &&
                    prospect_may_go(s, b, h->tenant, h->own, 0) && prospect_host_allows(s, b, h, 0);
        int rc = goes ? move_out(s, b, &why) : ERR_STATE;
        if (rc == ERR_DEVICE_LOST) {
            *e = why;
            return 0;
        }
        bytes += rc == 0 ? size : 0;
        b = next;
    }
    return bytes;
}

/* Who is above its soft limit gives first. */
static uint64_t evict(struct spill *s, struct hunger h, struct err *e)
{
    h.soft = !h.own && s->device->memory.softs > 0;
    uint64_t bytes = h.soft ? evict_some(s, &h, e) : 0;
    h.soft = false;
    h.wanted = sat_sub(h.wanted, bytes);
    return h.wanted > 0 && e->code != ERR_DEVICE_LOST ? bytes + evict_some(s, &h, e) : bytes;
}

/* Will there be room when what moves on the device has done so? */
static bool moving_helps(void *data)
{
    const struct spill *s = data;
    struct pool_refusal refusal;
    pool_refusal(pool_of(s), &refusal);
    return s->within > 0 && refusal.pending > 0 &&
           refusal.wanted <= prospect_vacant(s, refusal.tenant);
}

/* What is kept for others counts in whole pages: where the bytes that are free would do, what lies
 * in ragged ones is put together. What that did not help it does not help again until something is
 * freed. */
static bool pack(struct spill *s, const struct hunger *h)
{
    struct pool_stats stats;
    pool_stats(pool_of(s), &stats);
    if (h->wanted > prospect_vacant(s, h->tenant) || s->packed == stats.frees) {
        return false;
    }
    s->packed = stats.frees;
    return pool_defragment(pool_of(s), PACK_BYTES) > 0;
}

/* Asks until it is there, nothing can go any more, or what goes has to be gone first. `back`: see
 * struct hunger. */
static int piece_get(struct spill *s, const struct memory_ask *ask, uint64_t back,
                     struct memory_piece *ret_piece, struct err *e)
{
    struct hunger h = {.tenant = memory_number(&s->device->memory, ask->tenant),
                       .wanted = ask->size,
                       .back = back};
    uint64_t gone = s->leaving;
    for (;;) {
        struct err why = ERR_INIT;
        int rc = memory_alloc(&s->device->memory, ask, ret_piece, &why);
        h.own = rc == ERR_LIMIT; /* what it gives up is off its account at once */
        bool enough = memory_service_busy(&s->device->memory) &&
                      (gone > ask->size + ask->size / 8 || moving_helps(s));
        bool helps = h.own || (rc == ERR_DEVICE_MEMORY && !enough);
        uint64_t more = helps ? evict(s, h, &why) : 0;
        gone += more;
        if (why.code == ERR_DEVICE_LOST) { /* also behind what went already */
            *e = why;
            return why.code;
        }
        bool packed = more == 0 && rc == ERR_DEVICE_MEMORY && !enough && pack(s, &h);
        if (more == 0 && !packed) {
            if (rc != 0) {
                *e = why;
            }
            return rc != 0 ? why.code : 0;
        }
    }
}

/* Nobody is moved for what cannot be had all the same. */
static bool obtainable(struct spill *s, const struct hunger *h)
{
    struct prospect p;
    prospect_look(s, h, &p);
    return h->wanted <= p.obtainable;
}

/* The pool gives back to the device what nothing uses any more: so the copies are waited for. What
 * is free by then may lie in pages with others': those move together. */
static bool clear_out(void *data, uint64_t tenant, uint64_t bytes, bool own)
{
    const struct timespec pause = {.tv_nsec = 20 * (long)NS_PER_US};
    struct spill *s = data;
    const struct hunger h = {
        .tenant = memory_number(&s->device->memory, tenant), .wanted = bytes, .own = own};
    struct err why = ERR_INIT;
    uint64_t until = clock_now_ns() + CLEAR_OUT_NS;
    if (!obtainable(s, &h)) {
        return false;
    }
    uint64_t gone = evict(s, h, &why);
    if (gone == 0 && why.code == 0 && !own) {
        gone = pool_defragment(pool_of(s), bytes);
    }
    s->device->memory.hung = s->device->memory.hung || why.code == ERR_DEVICE_LOST;
    while (s->first != NULL && clock_now_ns() < until) {
        (void)nanosleep(&pause, NULL);
        spill_poll(s);
    }
    return gone > 0 && s->first == NULL;
}

/* What is free in its slabs goes first: the pool puts them together for the next request. */
int spill_shed(struct spill *s, uint64_t tenant, struct err *e)
{
    struct pool_account a;
    unsigned number = memory_number(&s->device->memory, tenant);
    pool_account(pool_of(s), number, &a);
    const struct hunger h = {.tenant = number,
                             .wanted = sat_sub(sat_add(a.meter.used, a.reserved), a.quota.hard),
                             .own = true};
    struct err why = ERR_INIT;
    if (h.wanted > 0) {
        (void)evict(s, h, &why);
    }
    if (why.code == ERR_DEVICE_LOST) {
        *e = why;
    }
    return why.code == ERR_DEVICE_LOST ? ERR_DEVICE_LOST : 0;
}

/* For people: `code` is what the pool said. */
static int say(struct spill *s, uint64_t key, uint64_t wanted, int code, struct err *e)
{
    struct prospect p;
    const struct hunger h = {.tenant = memory_number(&s->device->memory, key)};
    prospect_look(s, &h, &p);
    const struct shortage x = {.tenant = key,
                               .wanted = wanted,
                               .own = code == ERR_LIMIT,
                               .movable = code == ERR_LIMIT ? p.own : p.movable,
                               .obtainable = p.obtainable,
                               .held = p.held,
                               .leaving = s->leaving,
                               .host_bytes = s->bytes,
                               .host_limit = s->limit};
    return shortage_say(&s->device->memory, &x, e);
}

bool spill_short(int code)
{
    return code == ERR_DEVICE_MEMORY || code == ERR_LIMIT;
}

int spill_return(struct spill *s, struct buffer *b, struct err *e)
{
    if (!buffer_away(b)) {
        return 0;
    }
    const struct memory_ask ask = {.size = b->size,
                                   .tenant = b->tenant,
                                   .stream = memory_service(&s->device->memory),
                                   .tag = buffer_tag(b),
                                   .place = &b->place};
    int rc = piece_get(s, &ask, b->spilled != NULL ? b->size : 0, &b->piece, e);
    if (rc == 0) {
        b->place = (struct pool_place){.size = 0};
    }
    rc = rc == 0 ? move_back(s, b, e) : rc;
    return rc == 0 ? 0 : err_wrap(e, "bringing back buffer %" PRIu64, b->id);
}

/* Bytes that are not on the device yet. *ret_back (may be NULL): of these, what the host has. */
static uint64_t lacks(const struct job *j, uint64_t *ret_back)
{
    uint64_t bytes = j->temp_bytes;
    uint64_t back = 0;
    for (unsigned i = 0; i < j->buffer_count; i++) {
        struct buffer *b = j->buffers[i];
        if (buffer_away(b) && !b->counted) {
            b->counted = true;
            bytes += b->size;
            back += b->spilled != NULL ? b->size : 0;
        }
    }
    for (unsigned i = 0; i < j->buffer_count; i++) {
        j->buffers[i]->counted = false;
    }
    if (ret_back != NULL) {
        *ret_back = back;
    }
    return bytes;
}

bool spill_assured(const struct spill *s, const struct job *j)
{
    struct pool_account a;
    unsigned tenant = memory_number(&s->device->memory, j->tenant);
    pool_account(pool_of(s), tenant, &a);
    uint64_t all = sat_add(sat_add(a.mapped, a.reserved), lacks(j, NULL));
    return a.quota.guaranteed > 0 && all <= a.quota.guaranteed;
}

/* What it lacks is more than its limit, or than there is for it on a device that is empty. */
static int check_most(struct spill *s, const struct job *j, const struct hunger *h, struct err *e)
{
    struct pool_account a;
    struct pool_stats stats;
    pool_account(pool_of(s), h->tenant, &a);
    pool_stats(pool_of(s), &stats);
    bool own = h->wanted > a.quota.hard;
    if (!own && h->wanted <= sat_sub(stats.limit, pool_kept(pool_of(s), h->tenant))) {
        return 0;
    }
    (void)say(s, j->tenant, h->wanted, own ? ERR_LIMIT : ERR_DEVICE_MEMORY, e);
    return SPILL_NEVER;
}

/* Is there hope for what it lacks, if all that may go went? */
static int check_prospect(struct spill *s, const struct job *j, struct err *e)
{
    struct prospect p;
    struct hunger h = {.tenant = memory_number(&s->device->memory, j->tenant)};
    h.wanted = lacks(j, &h.back);
    if (h.wanted <= prospect_vacant(s, h.tenant)) {
        return 0;
    }
    if (check_most(s, j, &h, e) != 0) {
        return SPILL_NEVER;
    }
    prospect_look(s, &h, &p);
    bool own = h.wanted > sat_add(prospect_allowance(s, h.tenant), p.own);
    return h.wanted <= p.obtainable
               ? 0
               : say(s, j->tenant, h.wanted, own ? ERR_LIMIT : ERR_DEVICE_MEMORY, e);
}

uint64_t spill_changes(const struct spill *s)
{
    return s->device->memory.changes;
}

void spill_explain(struct spill *s, const struct job *j, struct err *e)
{
    (void)say(s, j->tenant, lacks(j, NULL), ERR_DEVICE_MEMORY, e);
}

static int temps_get(struct spill *s, struct job *j, struct err *e)
{
    int rc = 0;
    while (rc == 0 && j->piece_count < job_pieces(j)) {
        /* large copies are in the order of their own stream, and wait for no kernel there */
        const struct memory_ask ask = {.size = job_piece_bytes(j, j->piece_count),
                                       .tenant = j->tenant,
                                       .stream = j->large ? memory_copies(&s->device->memory)
                                                          : j->stream};
        rc = ask.size == 0 ? 0 : piece_get(s, &ask, 0, &j->pieces[j->piece_count], e);
        j->piece_count += rc == 0;
    }
    return rc == 0 ? 0 : err_wrap(e, "temporaries of %" PRIu64 " bytes", j->temp_bytes);
}

static int bring(struct spill *s, struct job *j, struct err *e)
{
    int rc = check_prospect(s, j, e);
    if (rc != 0) {
        return rc;
    }
    struct err why = ERR_INIT;
    for (unsigned i = 0; rc == 0 && i < j->buffer_count; i++) {
        rc = spill_return(s, j->buffers[i], &why);
    }
    rc = rc == 0 ? temps_get(s, j, &why) : rc;
    if (spill_short(rc)) {
        return say(s, j->tenant, lacks(j, NULL), rc, e);
    }
    if (rc != 0) {
        *e = why;
    }
    return rc;
}

/* Without room for it no library serves, and the job runs all the same. */
static void workspace_get(struct spill *s, struct job *j)
{
    const struct memory_ask ask = {
        .size = j->workspace_size, .tenant = j->tenant, .stream = j->stream};
    if (ask.size > 0 && memory_alloc(&s->device->memory, &ask, &j->workspace, NULL) != 0) {
        j->workspace_size = 0;
    }
}

/* It has nothing, as before: where no buffer came or went for it, nothing has changed. */
static void acquire_undo(struct spill *s, struct job *j, uint64_t changes, uint64_t moved)
{
    job_unpin(s->buffers, j);
    for (unsigned i = 0; i < j->piece_count; i++) {
        memory_free(&s->device->memory, &j->pieces[i]);
    }
    j->piece_count = 0;
    if (s->outs + s->backs == moved) {
        s->device->memory.changes = changes;
    }
}

int spill_acquire(struct spill *s, struct job *j, struct err *e)
{
    uint64_t changes = s->device->memory.changes;
    uint64_t moved = s->outs + s->backs;
    job_pin(s->buffers, j);
    int rc = bring(s, j, e);
    if (rc != 0) {
        acquire_undo(s, j, changes, moved);
        return rc;
    }
    workspace_get(s, j);
    for (unsigned i = 0; i < j->buffer_count; i++) {
        j->buffers[i]->content = BUFFER_BYTES; /* from now on it may be written */
    }
    return 0;
}

void spill_stats(const struct spill *s, struct msg_w_pool *stats)
{
    stats->spilled = s->bytes;
    stats->spill_limit = s->limit;
    stats->spills = s->outs;
    stats->returns = s->backs;
}
