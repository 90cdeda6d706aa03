#include "daemon/worker/copy/copies.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <utlist.h>

#include "common/clock.h"
#include "common/log.h"

#define PIECES (2u * COPY_CHUNKS)

/* ---- making -------------------------------------------------------------------------------- */

static void pieces_make(struct copies *c)
{
    const struct backend_memory_ops *ops = c->device->b->memory;
    size_t size = PIECES * (size_t)COPY_CHUNK;
    struct err e = ERR_INIT;
    if (ops->register_host == NULL) {
        return;
    }
    uint8_t *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        log_say(LOG_NOT_PINNED,
                "no memory for a copy buffer, so copies of memory that is not pinned may block");
        return;
    }
    if (ops->register_host(c->device->d, memory, size, true, &e) != 0) {
        log_say(LOG_NOT_PINNED,
                "the copy buffer cannot be pinned, so copies of memory that is not pinned may "
                "block: %s",
                e.text);
        (void)munmap(memory, size);
        return;
    }
    c->memory = memory;
    for (unsigned i = 0; i < PIECES; i++) {
        c->queue[i % 2].piece[i / 2] = memory + i * COPY_CHUNK;
    }
}

void copies_init(struct copies *c, struct device *device, uv_loop_t *loop, void (*wake)(void *),
                 void *wake_data)
{
    *c = (struct copies){.device = device, .loop = loop, .wake = wake, .wake_data = wake_data};
    for (int i = 0; i < 2; i++) {
        c->queue[i].stream = device->copy_stream[i];
        c->queue[i].copies = c;
    }
    pieces_make(c);
}

void copies_finish(struct copies *c)
{
    if (c->memory != NULL) {
        const size_t size = PIECES * (size_t)COPY_CHUNK;
        c->device->b->memory->unregister_host(c->device->d, c->memory, size);
        (void)munmap(c->memory, size);
        c->memory = NULL;
    }
}

/* ---- a copy -------------------------------------------------------------------------------- */

bool copy_enqueued(const struct copy *c)
{
    return c->enqueued == c->size;
}

static void waiting_add(struct copy_queue *q, struct copy *copy)
{
    struct copy *behind = q->waiting;
    while (behind != NULL && behind->rank <= copy->rank) {
        behind = behind->next;
    }
    if (behind == NULL) {
        DL_APPEND(q->waiting, copy);
    } else {
        DL_PREPEND_ELEM(q->waiting, behind, copy);
    }
}

void copies_add(struct copies *c, struct copy *copy)
{
    copy->begun = copy->enqueued = 0;
    copy->last = NULL;
    copy->started = false;
    copy->begin_ns = copy->end_ns = 0;
    copy->chunks = 0;
    copy->stopped = false;
    copy->e = ERR_INIT;
    copy->rank = (int64_t)clock_now_ns() - copy->priority * COPY_LEVEL_NS;
    c->count++;
    c->fresh = true;
    waiting_add(&c->queue[copy->direction], copy);
}

/* Is no chunk under way, and will none begin? */
static bool is_over(const struct copy *copy)
{
    return copy->chunks == 0 && (copy->stopped || copy->begun == copy->size);
}

static void settle(struct copies *c, struct copy *copy)
{
    if (is_over(copy)) {
        DL_APPEND(c->ended, copy);
    }
}

static void stop(struct copies *c, struct copy *copy, const struct err *why)
{
    if (copy->stopped) {
        return;
    }
    copy->stopped = true;
    copy->e = *why;
    if (copy->begun < copy->size) {
        DL_DELETE(c->queue[copy->direction].waiting, copy);
    }
}

void copies_stop(struct copies *c, struct copy *copy, const struct err *why)
{
    if (!is_over(copy) && !copy->stopped) {
        stop(c, copy, why);
        settle(c, copy);
    }
}

/* ---- chunks -------------------------------------------------------------------------------- */

static void chunk_work(uv_work_t *work)
{
    struct copy_chunk *k = work->data;
    uint8_t *host = k->copy->host + k->at;
    if (k->state == CHUNK_FILLING) {
        memcpy(k->piece, host, (size_t)k->size);
    } else {
        memcpy(host, k->piece, (size_t)k->size);
    }
}

static void chunk_worked(uv_work_t *work, int status)
{
    struct copy_chunk *k = work->data;
    struct copies *c = k->queue->copies;
    (void)status; /* it is never cancelled */
    k->state = k->state == CHUNK_FILLING ? CHUNK_READY : CHUNK_OVER;
    c->wake(c->wake_data);
}

static void chunk_queue_work(struct copy_chunk *k, enum chunk_state state)
{
    k->state = state;
    k->work.data = k;
    (void)uv_queue_work(k->queue->copies->loop, &k->work, chunk_work, chunk_worked);
}

static void chunk_fail(struct copy_chunk *k, const struct err *e)
{
    k->state = CHUNK_OVER;
    stop(k->queue->copies, k->copy, e);
}

static void chunk_enqueue(struct copy_chunk *k)
{
    struct copy_queue *q = k->queue;
    struct device *dev = q->copies->device;
    const struct backend_stream_ops *ops = dev->b->stream;
    struct copy *copy = k->copy;
    struct backend_ref ref = {copy->ref.block, copy->ref.offset + k->at};
    uint8_t *host = k->piece != NULL ? k->piece : copy->host + k->at;
    struct err e = ERR_INIT;
    if (copy->stopped) {
        k->state = CHUNK_OVER;
        return;
    }
    int rc = copy->direction == COPY_TO_DEVICE ? ops->write(q->stream, ref, host, k->size, &e)
                                               : ops->read(q->stream, host, ref, k->size, &e);
    if (rc == 0 && device_mark(dev, q->stream, &k->marker, &e) != 0) {
        /* Without a marker the end of the chunk can never be known. */
        e.code = ERR_DEVICE_LOST;
        rc = err_wrap(&e, "marking the end of a copy");
    }
    if (rc != 0) {
        chunk_fail(k, &e);
        return;
    }
    device_arm(dev, k->marker);
    k->state = CHUNK_FLYING;
    copy->enqueued += k->size;
    if (copy_enqueued(copy)) {
        copy->last = k->marker;
    }
}

static void chunk_landed(struct copy_chunk *k, enum backend_state state, const struct err *e)
{
    const struct backend_marker_ops *ops = k->queue->copies->device->b->marker;
    struct copy *copy = k->copy;
    if (state == BACKEND_DONE) {
        uint64_t begin = 0;
        uint64_t end = 0;
        ops->times(k->marker, &begin, &end);
        copy->begin_ns = copy->begin_ns == 0 || begin < copy->begin_ns ? begin : copy->begin_ns;
        copy->end_ns = end > copy->end_ns ? end : copy->end_ns;
    }
    copy->last = copy->last == k->marker ? NULL : copy->last;
    ops->release(k->marker);
    k->marker = NULL;
    if (state == BACKEND_FAILED) {
        chunk_fail(k, e);
    } else if (k->piece != NULL && copy->direction == COPY_FROM_DEVICE) {
        chunk_queue_work(k, CHUNK_EMPTYING);
    } else {
        k->state = CHUNK_OVER;
    }
}

/* ---- a direction --------------------------------------------------------------------------- */

static struct copy_chunk *chunk_at(struct copy_queue *q, unsigned i)
{
    return &q->chunk[(q->first + i) % COPY_CHUNKS];
}

static void land(struct copy_queue *q)
{
    const struct backend_marker_ops *ops = q->copies->device->b->marker;
    for (unsigned i = 0; i < q->count; i++) {
        struct copy_chunk *k = chunk_at(q, i);
        struct err e = ERR_INIT;
        enum backend_state state =
            k->state == CHUNK_FLYING ? ops->state(k->marker, &e) : BACKEND_PENDING;
        k->copy->started = k->copy->started || state != BACKEND_PENDING;
        if (state == BACKEND_DONE || state == BACKEND_FAILED) {
            chunk_landed(k, state, &e);
        }
    }
    while (q->count > 0 && q->chunk[q->first].state == CHUNK_OVER) {
        struct copy *copy = q->chunk[q->first].copy;
        q->first = (q->first + 1) % COPY_CHUNKS;
        q->count--;
        copy->chunks--;
        settle(q->copies, copy);
    }
}

static void begin(struct copy_queue *q)
{
    struct copy *copy = q->waiting;
    struct copy_chunk *k = chunk_at(q, q->count++);
    uint64_t left = copy->size - copy->begun;
    *k = (struct copy_chunk){.queue = q,
                             .copy = copy,
                             .at = copy->begun,
                             .size = left < COPY_CHUNK ? left : COPY_CHUNK,
                             .state = CHUNK_READY};
    if (!copy->registered) {
        k->piece = q->piece[k - q->chunk];
    }
    copy->begun += k->size;
    copy->chunks++;
    if (copy->begun == copy->size) {
        DL_DELETE(q->waiting, copy);
    }
    if (k->piece != NULL && copy->direction == COPY_TO_DEVICE) {
        chunk_queue_work(k, CHUNK_FILLING);
    }
}

static void enqueue(struct copy_queue *q)
{
    for (unsigned i = 0; i < q->count; i++) {
        struct copy_chunk *k = chunk_at(q, i);
        if (k->state == CHUNK_FILLING) {
            return; /* later chunks wait, so that all complete in order */
        }
        if (k->state == CHUNK_READY) {
            chunk_enqueue(k);
        }
    }
}

static bool may_begin(const struct copy_queue *q)
{
    return q->count < COPY_CHUNKS && q->waiting != NULL;
}

static void queue_run(struct copy_queue *q)
{
    land(q);
    while (may_begin(q)) {
        begin(q);
    }
    enqueue(q);
    land(q); /* chunks that could not be enqueued are over */
}

static void report_ended(struct copies *c)
{
    while (c->ended != NULL) {
        struct copy *copy = c->ended;
        struct err e = copy->e;
        DL_DELETE(c->ended, copy);
        c->count--;
        copy->done(copy, &e);
    }
}

void copies_poll(struct copies *c)
{
    do { /* copies that end make room, and their done() may add copies */
        c->fresh = false;
        queue_run(&c->queue[COPY_TO_DEVICE]);
        queue_run(&c->queue[COPY_FROM_DEVICE]);
        report_ended(c);
    } while (c->fresh || may_begin(&c->queue[COPY_TO_DEVICE]) ||
             may_begin(&c->queue[COPY_FROM_DEVICE]));
}
