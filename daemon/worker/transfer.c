#include "daemon/worker/transfer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <utlist.h>

void transfers_init(struct transfers *t, struct device *device, struct buffers *buffers,
                    transfer_done_fn done, void *data)
{
    *t = (struct transfers){.device = device, .buffers = buffers, .done = done, .data = data};
}

/* All of the piece, so that the pattern fits. */
static int zero(struct device *dev, const struct buffer *b, struct err *e)
{
    static const uint8_t ZEROS[16];
    return dev->b->stream->fill(dev->service, b->piece.ref, ZEROS, sizeof ZEROS, b->piece.pool.size,
                                e);
}

static int restore(struct device *dev, const struct buffer *b, const struct memfd *host,
                   struct err *e)
{
    int rc = memory_clear(&dev->memory, &b->piece, memory_service(&dev->memory), e);
    return rc == 0 ? dev->b->stream->write(dev->service, b->piece.ref, host->data, b->size, e) : rc;
}

static int enqueue(struct device *dev, enum transfer_kind kind, const struct buffer *b,
                   const struct memfd *host, struct err *e)
{
    switch (kind) {
    case TRANSFER_ZERO:
        return zero(dev, b, e);
    case TRANSFER_SEAL:
        return dev->b->stream->read(dev->service, host->data, b->piece.ref, b->size, e);
    default:
        return restore(dev, b, host, e);
    }
}

/* What was enqueued and has no marker is never known to be over: its memory stays where it is until
 * the process ends. */
static int unmarked(struct buffer *b, struct memfd *host, struct err *e)
{
    buffer_use(b);
    if (host != NULL) {
        *host = MEMFD_NONE;
    }
    e->code = ERR_DEVICE_LOST;
    return err_wrap(e, "marking the end of a copy of buffer %" PRIu64, b->id);
}

int transfer_start(struct transfers *t, enum transfer_kind kind, struct buffer *b,
                   struct memfd *host, struct err *e)
{
    struct transfer *x = calloc(1, sizeof *x);
    if (x == NULL) {
        return err_set(e, ERR_NOMEM, "transfer");
    }
    int rc = enqueue(t->device, kind, b, host, e);
    if (rc != 0) {
        free(x);
        return rc;
    }
    if (device_mark(t->device, t->device->service, &x->marker, e) != 0) {
        free(x);
        return unmarked(b, host, e);
    }
    x->kind = kind;
    x->buffer = b;
    x->host = MEMFD_NONE;
    if (host != NULL) {
        x->host = *host;
        *host = MEMFD_NONE;
    }
    memory_mark(&t->device->memory, memory_service(&t->device->memory), x->marker, &x->point);
    buffer_use(b);
    if (kind != TRANSFER_SEAL) {
        b->filling = x->marker;
    }
    DL_APPEND(t->first, x);
    return 0;
}

int transfers_wait(struct transfers *t, struct backend_marker *marker, struct err *e)
{
    return t->device->b->stream->wait(t->device->service, marker, e);
}

void transfers_supersede(struct transfers *t, const struct buffer *b)
{
    for (struct transfer *x = t->first; x != NULL; x = x->next) {
        x->superseded = x->superseded || (x->kind == TRANSFER_SEAL && x->buffer == b);
    }
}

/* The host copy is kept by its descriptor alone. */
static void keep_host(struct transfer *x)
{
    x->buffer->sealed_fd = x->host.fd;
    x->host.fd = -1;
}

static void finish(struct transfers *t, struct transfer *x, const struct err *e)
{
    struct buffer *b = x->buffer;
    DL_DELETE(t->first, x);
    memory_passed(&t->device->memory, &x->point);
    t->device->b->marker->release(x->marker);
    if (x->kind != TRANSFER_SEAL) {
        b->filling = NULL;
        b->broken = e->code != 0;
        if (!b->broken) {
            memory_cleaned(&b->piece);
        }
    }
    if (x->kind != TRANSFER_ZERO && e->code == 0 && b->sealed_fd < 0 && !x->superseded) {
        keep_host(x);
    }
    bool quiet = x->superseded && e->code == 0;
    memfd_finish(&x->host);
    free(x);
    if (!quiet) {
        t->done(t->data, b, e);
    }
    buffer_unuse(t->buffers, b);
}

void transfers_poll(struct transfers *t)
{
    struct transfer *x;
    struct transfer *next;
    DL_FOREACH_SAFE(t->first, x, next)
    {
        struct err e = ERR_INIT;
        enum backend_state state = t->device->b->marker->state(x->marker, &e);
        if (state == BACKEND_DONE || state == BACKEND_FAILED) {
            finish(t, x, &e);
        }
    }
}
