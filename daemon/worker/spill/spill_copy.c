#include "daemon/worker/spill/spill_copy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "common/log.h"
#include "daemon/pool/move.h"

#define CHUNK_BYTES SPILL_CHUNK /* no piece is larger */

/* A buffer's bytes in the arena. */
struct spill_copy {
    unsigned tenant; /* number of the tenant that it counts for while a buffer has it */
    unsigned count;
    struct pool_piece part[];
};

enum move_kind {
    MOVE_OUT,    /* from the device to the host */
    MOVE_BACK,   /* from the host to the device */
    MOVE_WITHIN, /* from one place on the device to another */
};

/* A move under way. */
struct spill_move {
    struct buffer *buffer;       /* kept in use by the move */
    enum buffer_content content; /* the content to restore if the move fails */
    enum move_kind kind;
    bool given_up; /* only part of the copy was enqueued: the buffer remains as it was before */
    /* owned: the copy on the host that it returns from; NULL: none, or MOVE_OUT */
    struct spill_copy *copy;
    /* owned: mapping of a sealed buffer's host copy, which goes through a copy queue */
    struct memfd sealed;
    struct copy bytes; /* the copy of `sealed`, which begins after the service stream's part */
    struct spill *spill;
    struct backend_marker *marker;
    struct timeline_point point;
    struct spill_move *prev, *next;
};

/* ---- the arena ------------------------------------------------------------------------------*/

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

/* Bytes of other tenants in the arena do no harm, because each part is written before it is
 * read. */
static int copy_make(struct spill *s, const struct buffer *b, struct spill_copy **ret_copy,
                     struct err *e)
{
    unsigned count = (unsigned)((b->size + CHUNK_BYTES - 1) / CHUNK_BYTES);
    struct spill_copy *copy = calloc(1, sizeof *copy + count * sizeof copy->part[0]);
    if (copy == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a copy of buffer %" PRIu64, b->id);
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

/* Counts the buffer as on the host, in total and for its tenant's present number. */
static void count(struct spill *s, struct buffer *b, struct spill_copy *copy)
{
    struct memory *m = &s->device->memory;
    b->spilled = copy;
    copy->tenant = memory_number(m, b->tenant);
    s->bytes += b->size;
    memory_spilled(m, copy->tenant, b->size, true);
}

/* Counts the buffer as no longer on the host. The caller gets its copy. */
static struct spill_copy *uncount(struct spill *s, struct buffer *b)
{
    struct spill_copy *copy = b->spilled;
    b->spilled = NULL;
    s->bytes -= b->size;
    memory_spilled(&s->device->memory, copy->tenant, b->size, false);
    return copy;
}

void spill_forget(void *data, struct buffer *b)
{
    struct spill *s = data;
    copy_free(s, uncount(s, b));
}

int spill_arena_init(struct spill *s, struct err *e)
{
    const struct pool_options options = {.limit = s->limit, .streams = 1, .max_blocks = 1u << 20};
    int rc = pool_create(&s->host.pool.source, &options, &s->arena, e);
    if (rc == 0) {
        struct err why = ERR_INIT;
        rc = pool_warm(s->arena, CHUNK_BYTES < s->limit ? CHUNK_BYTES : s->limit, &why);
        if (rc != 0 && rc != ERR_BUSY) { /* memory may be available later */
            log_say(LOG_SPILL_FAILED, "host memory for spilled buffers: %s", why.text);
        }
        rc = 0;
    }
    return rc == 0 ? 0 : err_wrap(e, "host memory for spilled buffers");
}

/* ---- copies ---------------------------------------------------------------------------------*/

/* Enqueues copies of all parts between the buffer's memory and the arena. */
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

/* Marks the end of what was enqueued. Without a mark the end could not be known: the device
 * counts as lost. */
static int move_begin(struct spill *s, struct spill_move *m, struct buffer *b, struct err *e)
{
    if (device_mark_service(s->device, &m->marker, &m->point, e) != 0) {
        return err_wrap(e, "marking the end of a copy of buffer %" PRIu64, b->id);
    }
    m->buffer = b;
    buffer_use(b);
    DL_APPEND(s->first, m);
    return 0;
}

static bool moves_within(const struct spill *s, const struct buffer *b)
{
    const struct spill_move *m = b->filling != NULL ? s->first : NULL;
    while (m != NULL && !(m->kind == MOVE_WITHIN && m->marker == b->filling)) {
        m = m->next;
    }
    return m != NULL;
}

/* Gives the buffer's memory to others, ordered behind the present commands of the service
 * stream. A move into it may still be under way: its end says nothing about the memory that the
 * buffer gets next. */
static void leave(struct spill *s, struct buffer *b)
{
    if (moves_within(s, b)) { /* the copy may fail yet */
        memory_soiled(&b->piece);
    }
    b->filling = NULL;
    buffer_pin(s->buffers, b); /* removes it from the list of evictable buffers */
    memory_vacate(&s->device->memory, &b->piece, &b->place);
    buffer_unpin(s->buffers, b);
    s->outs++;
}

int spill_move_out(struct spill *s, struct buffer *b, struct err *e)
{
    if (buffer_keeps_itself(b)) {
        leave(s, b);
        return 0;
    }
    struct spill_copy *copy = NULL;
    struct spill_move *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a copy of buffer %" PRIu64, b->id);
    }
    *m = (struct spill_move){.kind = MOVE_OUT, .sealed = MEMFD_NONE};
    int rc = s->arena == NULL ? ERR_LIMIT : copy_make(s, b, &copy, e);
    if (rc != 0) {
        free(m);
        return rc;
    }
    struct err why = ERR_INIT;
    rc = copy_enqueue(s, b, copy, true, &why);
    int marked = move_begin(s, m, b, e); /* also behind a copy that was enqueued in part */
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

/* For a move that failed while the host still has the content. Jobs that have the buffer on the
 * device fail. When they are over, the buffer loses its memory, and the next job brings it in
 * again. */
static void tear(struct spill *s, struct spill_move *m)
{
    struct buffer *b = m->buffer;
    b->loss = BUFFER_TORN;
    b->content = m->content; /* the job for which it returned was about to write it */
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

static void move_warn(const struct spill_move *m, const struct err *why)
{
    log_say(LOG_SPILL_FAILED, "buffer %" PRIu64 ": a copy %s the device failed: %s", m->buffer->id,
            m->kind == MOVE_WITHIN ? "on"
            : m->kind == MOVE_OUT  ? "from"
                                   : "to",
            why->text);
}

/* Maps the host copy for this move alone, because the buffer may be sealed again or freed
 * meanwhile. */
static int sealed_map(const struct buffer *b, struct memfd *ret_host, struct err *e)
{
    int fd = dup(b->sealed_fd);
    if (fd < 0) {
        return err_errno(e, ERR_IO, "the host copy of buffer %" PRIu64, b->id);
    }
    int rc = memfd_adopt(fd, (size_t)b->size, false, ret_host, e);
    if (rc != 0) {
        (void)close(fd);
    }
    return rc;
}

/* Finds the source of the bytes, and enqueues their copy. The host copy of a sealed buffer is
 * not registered with the device, so a driver would block the caller: it goes through a copy
 * queue later. */
static int fetch(struct spill *s, struct spill_move *m, struct buffer *b, struct err *e)
{
    struct memory *memory = &s->device->memory;
    int rc = memory_clear(memory, &b->piece, b->size, memory_service(memory), e);
    if (rc != 0 || b->content != BUFFER_BYTES) {
        return rc;
    }
    return b->spilled != NULL ? copy_enqueue(s, b, b->spilled, false, e)
                              : sealed_map(b, &m->sealed, e);
}

/* Jobs wait until the content has arrived, and the buffer is not evicted: the copy queue has a
 * stream of its own, which other commands do not wait for. */
static void sealed_expect(struct spill *s, struct spill_move *m)
{
    m->buffer->arrival = BUFFER_FETCHED;
    buffer_pin(s->buffers, m->buffer);
    /* no command in a stream waits for the marker, so the loop has to */
    device_arm(s->device, m->marker);
}

/* After a failure the next job brings in the zeros again. */
static void on_zeroed(void *data, struct buffer *b, const struct err *why)
{
    struct spill_move *m = data;
    struct spill *s = m->spill;
    (void)b;
    if (why->code == 0) {
        move_free(s, m);
        return;
    }
    move_warn(m, why);
    if (device_is_lost(why->code)) { /* commands may still run: nothing is freed */
        s->device->memory.hung = true;
    } else {
        tear(s, m);
    }
}

static int zeros_begin(struct spill *s, struct buffer *b, struct err *e)
{
    struct spill_move *m = calloc(1, sizeof *m);
    int rc = m == NULL ? err_set(e, ERR_NOMEM, "no memory to zero buffer %" PRIu64, b->id) : 0;
    if (rc == 0) {
        *m = (struct spill_move){.kind = MOVE_BACK,
                                 .spill = s,
                                 .buffer = b,
                                 .content = b->content,
                                 .sealed = MEMFD_NONE};
        buffer_use(b);
        rc = transfer_zero(s->transfers, b, on_zeroed, m, e);
    }
    if (rc != 0) {
        if (m != NULL) {
            buffer_unuse(s->buffers, b);
        }
        free(m);
        memory_free(&s->device->memory, &b->piece);
        return rc;
    }
    s->backs++;
    return b->loss == BUFFER_TORN ? buffer_whole(b, e) : 0;
}

int spill_move_back(struct spill *s, struct buffer *b, struct err *e)
{
    if (b->content == BUFFER_ZEROS || (b->content == BUFFER_UNDEFINED && b->piece.dirty)) {
        return zeros_begin(s, b, e);
    }
    if (b->content == BUFFER_UNDEFINED && memory_settled(&s->device->memory, &b->piece)) {
        return 0;
    }
    struct spill_move *m = calloc(1, sizeof *m);
    if (m == NULL) {
        memory_free(&s->device->memory, &b->piece);
        return err_set(e, ERR_NOMEM, "no memory for a copy of buffer %" PRIu64, b->id);
    }
    *m = (struct spill_move){
        .kind = MOVE_BACK, .spill = s, .content = b->content, .sealed = MEMFD_NONE};
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
    } else if (m->sealed.data != NULL) {
        sealed_expect(s, m);
    }
    s->backs++;
    return 0;
}

int spill_move_back_later(struct spill *s, struct buffer *b, struct err *e)
{
    struct spill_move *m = calloc(1, sizeof *m);
    if (m == NULL) {
        memory_free(&s->device->memory, &b->piece);
        return err_set(e, ERR_NOMEM, "no memory for a copy of buffer %" PRIu64, b->id);
    }
    *m = (struct spill_move){.kind = MOVE_BACK, .spill = s, .buffer = b, .sealed = MEMFD_NONE};
    buffer_use(b);
    buffer_pin(s->buffers, b);
    b->arrival = BUFFER_FETCHED;
    DL_APPEND(s->unmapped, m);
    return 0;
}

/* The memory of a buffer that returns is mapped, or it got none. After a failure the buffer is away
 * again, and the job that needs it tries again, or fails for the same reason. */
static void mapping_end(struct spill *s, struct spill_move *m, bool mapped)
{
    struct buffer *b = m->buffer;
    struct err e = ERR_INIT;
    DL_DELETE(s->unmapped, m);
    b->arrival = BUFFER_ARRIVED;
    if (!mapped || b->freed) {
        memory_free(&s->device->memory, &b->piece);
    } else if (spill_move_back(s, b, &e) != 0) {
        log_say(LOG_SPILL_FAILED, "buffer %" PRIu64 ": %s", b->id, e.text);
        s->device->memory.hung = s->device->memory.hung || device_is_lost(e.code);
    }
    buffer_unpin(s->buffers, b);
    move_free(s, m);
    s->device->memory.changes++;
}

static void mapping_poll_all(struct spill *s)
{
    struct spill_move *m;
    struct spill_move *next;
    DL_FOREACH_SAFE(s->unmapped, m, next)
    {
        enum pool_late late = memory_late(&s->device->memory, &m->buffer->piece);
        if (late != POOL_WAITS) {
            mapping_end(s, m, late == POOL_READY);
        }
    }
}

/* May the pool's mover move the buffer? It is not pinned, so no job or transfer depends on its
 * address: its next user reads the new address and waits for the copy. */
static bool may_move(const struct buffer *b)
{
    return b->listed && b->filling == NULL && !b->piece.dirty && b->loss == BUFFER_WHOLE &&
           b->arrival == BUFFER_ARRIVED;
}

int spill_move_within(void *user, struct pool_move *move, struct err *e)
{
    struct spill *s = user;
    struct buffer *b = (struct buffer *)(uintptr_t)move->tag; /* buffer_tag */
    const struct backend_ref to = {.block = move->to->range, .offset = move->to->offset};
    struct err why = ERR_INIT;
    if (pool_ticket(s->device->memory.pool, move->to) != 0) {
        s->late = true;
        return err_set(e, ERR_BUSY, "the new memory of buffer %" PRIu64 " is not mapped yet",
                       b->id);
    }
    if (s->within >= SPILL_MOVES_MAX) {
        return err_set(e, ERR_LIMIT, "%u buffers move", s->within);
    }
    if (!may_move(b)) {
        return err_set(e, ERR_BUSY, "buffer %" PRIu64 " is in use", b->id);
    }
    struct spill_move *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return err_set(e, ERR_NOMEM, "no memory to move buffer %" PRIu64, b->id);
    }
    *m = (struct spill_move){.kind = MOVE_WITHIN, .content = b->content, .sealed = MEMFD_NONE};
    int rc = s->device->b->stream->copy(s->device->service, to, b->piece.ref, move->to->size, &why);
    if (rc == 0) {
        rc = move_begin(s, m, b, &why);
        s->device->memory.hung = s->device->memory.hung || rc != 0;
    }
    if (rc != 0) {
        free(m);
        if (!s->stuck) { /* one line for a series of failures */
            log_say(LOG_SPILL_FAILED, "buffer %" PRIu64 " could not be moved: %s", b->id, why.text);
        }
        s->stuck = true;
        return err_set(e, rc, "%s", why.text);
    }
    s->stuck = false;
    s->within++;
    s->withins++;
    b->filling = m->marker;
    move->stream = m->point.stream;
    move->seq = m->point.seq;
    memory_moved(&b->piece, move);
    return 0;
}

static void sealed_end(struct spill *s, struct spill_move *m, const struct err *why)
{
    struct buffer *b = m->buffer;
    b->arrival = BUFFER_ARRIVED;
    buffer_unpin(s->buffers, b);
    if (why->code == 0) {
        memory_cleaned(&b->piece);
        if (b->lent) {
            buffer_unseal(s->buffers, b);
        }
        move_free(s, m);
    } else {
        move_warn(m, why);
        tear(s, m);
    }
}

static void on_sealed(struct copy *copy, const struct err *why)
{
    struct spill_move *m = copy->data;
    struct spill *s = m->spill;
    if (device_is_lost(why->code)) { /* commands may still run: everything remains where it is */
        move_warn(m, why);
        s->device->memory.hung = true;
        return;
    }
    DL_DELETE(s->coming, m);
    sealed_end(s, m, why);
}

/* The service stream has passed its part: the bytes follow. */
static void sealed_begin(struct spill *s, struct spill_move *m)
{
    DL_APPEND(s->coming, m);
    m->bytes = (struct copy){.direction = COPY_TO_DEVICE,
                             .ref = m->buffer->piece.ref,
                             .host = m->sealed.data,
                             .size = m->buffer->size,
                             .done = on_sealed,
                             .data = m};
    copies_add(s->copies, &m->bytes);
}

/* The move's marker was passed, or failed. Returns false if the buffer has left the memory that it
 * moved to. Bytes of a seal are still to come: until then its memory is not clean. */
static bool marker_over(struct spill *s, struct spill_move *m, bool well)
{
    struct buffer *b = m->buffer;
    bool there = m->kind == MOVE_OUT || b->filling == m->marker;
    DL_DELETE(s->first, m);
    memory_passed(&s->device->memory, &m->point);
    s->device->b->marker->release(m->marker);
    s->within -= m->kind == MOVE_WITHIN;
    if (m->kind == MOVE_OUT) {
        s->leaving -= m->copy == NULL ? b->size : 0;
    } else if (there) {
        b->filling = NULL;
        if (well && m->sealed.data == NULL) {
            memory_cleaned(&b->piece);
        } else if (!well && m->kind == MOVE_WITHIN) { /* the pool took it for the tenant's */
            memory_soiled(&b->piece);
        }
    }
    return there;
}

static void move_end(struct spill *s, struct spill_move *m, const struct err *why)
{
    struct buffer *b = m->buffer;
    bool there = marker_over(s, m, why->code == 0);
    bool failed = why->code != 0 && !m->given_up && there;
    if (m->sealed.data != NULL) {
        if (failed) {
            sealed_end(s, m, why);
        } else {
            sealed_begin(s, m);
        }
        return;
    }
    if (failed) {
        move_warn(m, why);
    }
    if (failed && (m->kind == MOVE_BACK || (m->kind == MOVE_WITHIN && buffer_keeps_itself(b)))) {
        tear(s, m);
        return;
    }
    if (failed && b->loss == BUFFER_WHOLE) { /* no copy of the content is left */
        b->loss = BUFFER_BROKEN;
    }
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
            buffer_pin(s->buffers, m->buffer); /* removes it from the list of evictable buffers */
            memory_free(&s->device->memory, &m->buffer->piece);
            buffer_unpin(s->buffers, m->buffer);
            m->buffer->loss = BUFFER_WHOLE;
            move_free(s, m);
        }
    }
}

bool spill_busy(const struct spill *s)
{
    return s->first != NULL || s->unmapped != NULL || s->coming != NULL || s->torn != NULL;
}

uint64_t spill_expect(const struct spill *s)
{
    if (s->first == NULL) {
        return 0;
    }
    const struct spill_move *last = s->first->prev; /* utlist: the first one's `prev` */
    device_arm(s->device, last->marker);            /* no command in a stream waits for it */
    return last->point.seq;
}

void spill_poll(struct spill *s)
{
    struct spill_move *m;
    struct spill_move *next;
    mapping_poll_all(s);
    DL_FOREACH_SAFE(s->first, m, next)
    {
        struct err e = ERR_INIT;
        enum backend_state state = s->device->b->marker->state(m->marker, &e);
        if (state != BACKEND_DONE && state != BACKEND_FAILED) {
            break; /* all are on one stream, oldest first: later ones are pending, too */
        }
        move_end(s, m, &e);
    }
    mend(s);
}

static bool going(const struct spill *s, const struct buffer *b)
{
    const struct spill_move *m = s->first;
    while (m != NULL && !(m->kind == MOVE_OUT && m->buffer == b)) {
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
                           ": it is too short",
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
    int rc = buffer_whole(b, e);
    if (rc != 0) {
        return rc;
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
        } else { /* a buffer that was never written */
            memset((uint8_t *)to + done, 0, (size_t)n);
        }
        done += n;
    }
    return 0;
}
