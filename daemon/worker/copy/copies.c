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
        log_warn("no memory for copies of what the device does not know");
        return;
    }
    if (ops->register_host(c->device->d, memory, size, &e) != 0) {
        log_warn("memory for copies is not known to the device, so some block: %s", e.text);
        (void)munmap(memory, size);
        return;
    }
    c->memory = memory;
    for (unsigned i = 0; i < PIECES; i++) {
        c->lane[i % 2].piece[i / 2] = memory + i * COPY_CHUNK;
    }
}

void copies_init(struct copies *c, struct device *device, uv_loop_t *loop, void (*wake)(void *),
                 void *wake_data)
{
    *c = (struct copies){.device = device, .loop = loop, .wake = wake, .wake_data = wake_data};
    for (int i = 0; i < 2; i++) {
        c->lane[i].stream = device->lane[i];
        c->lane[i].copies = c;
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

static void waiting_add(struct lane *l, struct copy *copy)
{
    struct copy *behind = l->waiting;
    while (behind != NULL && behind->rank <= copy->rank) {
        behind = behind->next;
    }
    if (behind == NULL) {
        DL_APPEND(l->waiting, copy);
    } else {
        DL_PREPEND_ELEM(l->waiting, behind, copy);
    }
}

void copies_add(struct copies *c, struct copy *copy)
{
    copy->begun = copy->enqueued = 0;
    copy->last = NULL;
    copy->begin_ns = copy->end_ns = 0;
    copy->chunks = 0;
    copy->stopped = false;
    copy->e = ERR_INIT;
    copy->rank = (int64_t)clock_now_ns() - copy->priority * COPY_LEVEL_NS;
    c->count++;
    c->fresh = true;
    waiting_add(&c->lane[copy->direction], copy);
}

static void settle(struct copies *c, struct copy *copy)
{
    if (copy->chunks == 0 && (copy->stopped || copy->begun == copy->size)) {
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
        DL_DELETE(c->lane[copy->direction].waiting, copy);
    }
}

void copies_stop(struct copies *c, struct copy *copy, const struct err *why)
{
    bool over = copy->chunks == 0 && (copy->stopped || copy->begun == copy->size);
    if (!over && !copy->stopped) {
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
    struct copies *c = k->lane->copies;
    (void)status; /* it is never cancelled */
    k->state = k->state == CHUNK_FILLING ? CHUNK_READY : CHUNK_OVER;
    c->wake(c->wake_data);
}

static void chunk_queue_work(struct copy_chunk *k, enum chunk_state state)
{
    k->state = state;
    k->work.data = k;
    (void)uv_queue_work(k->lane->copies->loop, &k->work, chunk_work, chunk_worked);
}

static void chunk_fail(struct copy_chunk *k, const struct err *e)
{
    k->state = CHUNK_OVER;
    stop(k->lane->copies, k->copy, e);
}

static void chunk_enqueue(struct copy_chunk *k)
{
    struct lane *l = k->lane;
    struct device *dev = l->copies->device;
    const struct backend_stream_ops *ops = dev->b->stream;
    struct copy *copy = k->copy;
    struct backend_ref ref = {copy->ref.block, copy->ref.offset + k->at};
    uint8_t *host = k->piece != NULL ? k->piece : copy->host + k->at;
    struct err e = ERR_INIT;
    if (copy->stopped) {
        k->state = CHUNK_OVER;
        return;
    }
    int rc = copy->direction == COPY_TO_DEVICE ? ops->write(l->stream, ref, host, k->size, &e)
                                               : ops->read(l->stream, host, ref, k->size, &e);
    if (rc == 0 && device_mark(dev, l->stream, &k->marker, &e) != 0) {
        /* what was enqueued and has no marker is never known to be over */
        e.code = ERR_DEVICE_LOST;
        rc = err_wrap(&e, "marking the end of a copy");
    }
    if (rc != 0) {
        chunk_fail(k, &e);
        return;
    }
    device_tell(dev, k->marker);
    k->state = CHUNK_FLYING;
    copy->enqueued += k->size;
    if (copy_enqueued(copy)) {
        copy->last = k->marker;
    }
}

static void chunk_landed(struct copy_chunk *k, enum backend_state state, const struct err *e)
{
    const struct backend_marker_ops *ops = k->lane->copies->device->b->marker;
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

static struct copy_chunk *chunk_at(struct lane *l, unsigned i)
{
    return &l->chunk[(l->first + i) % COPY_CHUNKS];
}

static void land(struct lane *l)
{
    const struct backend_marker_ops *ops = l->copies->device->b->marker;
    for (unsigned i = 0; i < l->count; i++) {
        struct copy_chunk *k = chunk_at(l, i);
        struct err e = ERR_INIT;
        enum backend_state state =
            k->state == CHUNK_FLYING ? ops->state(k->marker, &e) : BACKEND_PENDING;
        if (state == BACKEND_DONE || state == BACKEND_FAILED) {
            chunk_landed(k, state, &e);
        }
    }
    while (l->count > 0 && l->chunk[l->first].state == CHUNK_OVER) {
        struct copy *copy = l->chunk[l->first].copy;
        l->first = (l->first + 1) % COPY_CHUNKS;
        l->count--;
        copy->chunks--;
        settle(l->copies, copy);
    }
}

static void begin(struct lane *l)
{
    struct copy *copy = l->waiting;
    struct copy_chunk *k = chunk_at(l, l->count++);
    uint64_t left = copy->size - copy->begun;
    *k = (struct copy_chunk){.lane = l,
                             .copy = copy,
                             .at = copy->begun,
                             .size = left < COPY_CHUNK ? left : COPY_CHUNK,
                             .state = CHUNK_READY};
    if (!copy->registered) {
        k->piece = l->piece[k - l->chunk];
    }
    copy->begun += k->size;
    copy->chunks++;
    if (copy->begun == copy->size) {
        DL_DELETE(l->waiting, copy);
    }
    if (k->piece != NULL && copy->direction == COPY_TO_DEVICE) {
        chunk_queue_work(k, CHUNK_FILLING);
    }
}

static void enqueue(struct lane *l)
{
    for (unsigned i = 0; i < l->count; i++) {
        struct copy_chunk *k = chunk_at(l, i);
        if (k->state == CHUNK_FILLING) {
            return; /* those behind it wait, so that they pass in order */
        }
        if (k->state == CHUNK_READY) {
            chunk_enqueue(k);
        }
    }
}

static bool may_begin(const struct lane *l)
{
    return l->count < COPY_CHUNKS && l->waiting != NULL;
}

static void lane_run(struct lane *l)
{
    land(l);
    while (may_begin(l)) {
        begin(l);
    }
    enqueue(l);
    land(l); /* what failed at once */
}

static void tell(struct copies *c)
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
    do { /* what ends makes room, and who is told may bring more */
        c->fresh = false;
        lane_run(&c->lane[COPY_TO_DEVICE]);
        lane_run(&c->lane[COPY_FROM_DEVICE]);
        tell(c);
    } while (c->fresh || may_begin(&c->lane[COPY_TO_DEVICE]) ||
             may_begin(&c->lane[COPY_FROM_DEVICE]));
}
