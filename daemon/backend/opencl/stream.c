#include <stdlib.h>

#include "common/clock.h"
#include "daemon/backend/opencl/marker.h"
#include "daemon/backend/ranges.h"

#define EVENTS_MAX 4096u /* limit of commands between two markers */

struct backend_stream {
    struct backend_device *device;
    cl_command_queue queue;
    struct opencl_events events;
    uint64_t enqueued_ns; /* the host's time just before the last command was enqueued */
    cl_event gate;        /* owned; later commands wait for it, until flush; NULL: none */
};

static int stream_create(struct backend_device *d, int priority, struct backend_stream **ret_stream,
                         struct err *e)
{
    (void)priority; /* not all drivers have queues with priorities */
    struct backend_stream *s = calloc(1, sizeof *s);
    if (!s) {
        return err_set(e, ERR_NOMEM, "no memory for a stream");
    }
    cl_int rc = CL_SUCCESS;
    s->device = d;
    s->queue = d->cl.CreateCommandQueue(d->context, d->id.device, CL_QUEUE_PROFILING_ENABLE, &rc);
    if (rc != CL_SUCCESS) {
        free(s);
        return opencl_error(rc, "clCreateCommandQueue", e);
    }
    *ret_stream = s;
    return 0;
}

static void gate_open(struct backend_stream *s)
{
    if (s->gate) {
        (void)s->device->cl.SetUserEventStatus(s->gate, CL_COMPLETE);
        s->device->cl.ReleaseEvent(s->gate);
        s->gate = NULL;
    }
}

static void stream_destroy(struct backend_stream *s)
{
    if (!s) {
        return;
    }
    gate_open(s);
    opencl_events_finish(&s->device->cl, &s->events);
    s->device->cl.ReleaseCommandQueue(s->queue);
    free(s);
}

/* Makes room for one more event; to be called before its command is enqueued. */
static int events_reserve(struct opencl_events *events, struct err *e)
{
    if (events->count < events->capacity) {
        return 0;
    }
    if (events->capacity >= EVENTS_MAX) {
        return err_set(e, ERR_LIMIT, "%u commands without a marker", EVENTS_MAX);
    }
    unsigned capacity = events->capacity ? events->capacity * 2 : 4;
    struct opencl_event *item = realloc(events->item, capacity * sizeof *item);
    if (!item) {
        return err_set(e, ERR_NOMEM, "no memory for events");
    }
    events->item = item;
    events->capacity = capacity;
    return 0;
}

static int command_begin(struct backend_stream *s, struct err *e)
{
    s->enqueued_ns = clock_now_ns();
    return events_reserve(&s->events, e);
}

static int command_end(struct backend_stream *s, cl_int rc, const char *call, cl_event event,
                       bool wait, struct err *e)
{
    if (rc != CL_SUCCESS) {
        return opencl_error(rc, call, e);
    }
    s->events.item[s->events.count++] = (struct opencl_event){event, wait};
    return 0;
}

static struct backend_range range_of(struct backend_ref ref, uint64_t size)
{
    return (struct backend_range){ref.block, ref.block->size, ref.offset, size};
}

static int stream_write(struct backend_stream *s, struct backend_ref dst, const void *host,
                        uint64_t size, struct err *e)
{
    const struct opencl_api *cl = &s->device->cl;
    int rc = backend_range_check("write", range_of(dst, size), e);
    if (rc == 0) {
        rc = command_begin(s, e);
    }
    if (rc != 0) {
        return rc;
    }
    cl_event event = NULL;
    if (dst.block->svm) {
        cl_int status = cl->EnqueueSVMMemcpy(s->queue, CL_FALSE, dst.block->svm + dst.offset, host,
                                             size, 0, NULL, &event);
        return command_end(s, status, "clEnqueueSVMMemcpy", event, false, e);
    }
    cl_int status = cl->EnqueueWriteBuffer(s->queue, dst.block->mem, CL_FALSE, dst.offset, size,
                                           host, 0, NULL, &event);
    return command_end(s, status, "clEnqueueWriteBuffer", event, false, e);
}

static int stream_read(struct backend_stream *s, void *host, struct backend_ref src, uint64_t size,
                       struct err *e)
{
    const struct opencl_api *cl = &s->device->cl;
    int rc = backend_range_check("read", range_of(src, size), e);
    if (rc == 0) {
        rc = command_begin(s, e);
    }
    if (rc != 0) {
        return rc;
    }
    cl_event event = NULL;
    if (src.block->svm) {
        cl_int status = cl->EnqueueSVMMemcpy(s->queue, CL_FALSE, host, src.block->svm + src.offset,
                                             size, 0, NULL, &event);
        return command_end(s, status, "clEnqueueSVMMemcpy", event, false, e);
    }
    cl_int status = cl->EnqueueReadBuffer(s->queue, src.block->mem, CL_FALSE, src.offset, size,
                                          host, 0, NULL, &event);
    return command_end(s, status, "clEnqueueReadBuffer", event, false, e);
}

static int stream_copy(struct backend_stream *s, struct backend_ref dst, struct backend_ref src,
                       uint64_t size, struct err *e)
{
    const struct opencl_api *cl = &s->device->cl;
    int rc = backend_copy_check(range_of(dst, size), range_of(src, size), e);
    if (rc == 0) {
        rc = command_begin(s, e);
    }
    if (rc != 0) {
        return rc;
    }
    cl_event event = NULL;
    if (dst.block->svm || src.block->svm) { /* the other block may be imported host memory */
        uint8_t *to = dst.block->svm ? dst.block->svm : dst.block->host;
        const uint8_t *from = src.block->svm ? src.block->svm : src.block->host;
        cl_int status = cl->EnqueueSVMMemcpy(s->queue, CL_FALSE, to + dst.offset, from + src.offset,
                                             size, 0, NULL, &event);
        return command_end(s, status, "clEnqueueSVMMemcpy", event, false, e);
    }
    cl_int status = cl->EnqueueCopyBuffer(s->queue, src.block->mem, dst.block->mem, src.offset,
                                          dst.offset, size, 0, NULL, &event);
    return command_end(s, status, "clEnqueueCopyBuffer", event, false, e);
}

static int stream_fill(struct backend_stream *s, struct backend_ref dst, const void *pattern,
                       size_t pattern_size, uint64_t size, struct err *e)
{
    const struct opencl_api *cl = &s->device->cl;
    int rc = backend_fill_check(range_of(dst, size), pattern_size, e);
    if (rc == 0) {
        rc = command_begin(s, e);
    }
    if (rc != 0) {
        return rc;
    }
    cl_event event = NULL;
    if (dst.block->svm) {
        cl_int status = cl->EnqueueSVMMemFill(s->queue, dst.block->svm + dst.offset, pattern,
                                              pattern_size, size, 0, NULL, &event);
        return command_end(s, status, "clEnqueueSVMMemFill", event, false, e);
    }
    cl_int status = cl->EnqueueFillBuffer(s->queue, dst.block->mem, pattern, pattern_size,
                                          dst.offset, size, 0, NULL, &event);
    return command_end(s, status, "clEnqueueFillBuffer", event, false, e);
}

static int stream_launch(struct backend_stream *s, struct backend_module *m, const char *entry,
                         const struct backend_launch *launch, struct err *e)
{
    int rc = command_begin(s, e);
    cl_event event = NULL;
    if (rc == 0) {
        rc = opencl_launch(s->device, s->queue, m, entry, launch, &event, e);
    }
    return rc != 0 ? rc : command_end(s, CL_SUCCESS, "", event, false, e);
}

static int mark(struct backend_stream *s, bool wakes, struct backend_marker **ret_marker,
                struct err *e)
{
    if (s->events.count == 0) {
        int rc = command_begin(s, e);
        if (rc != 0) {
            return rc;
        }
        cl_event event = NULL;
        cl_int status = s->device->cl.EnqueueMarkerWithWaitList(s->queue, 0, NULL, &event);
        rc = command_end(s, status, "clEnqueueMarkerWithWaitList", event, false, e);
        if (rc != 0) {
            return rc;
        }
    }
    return opencl_mark(s->device, &s->events, s->enqueued_ns, wakes, ret_marker, e);
}

static int stream_mark(struct backend_stream *s, struct backend_marker **ret_marker, struct err *e)
{
    return mark(s, true, ret_marker, e);
}

static int stream_mark_quiet(struct backend_stream *s, struct backend_marker **ret_marker,
                             struct err *e)
{
    return mark(s, false, ret_marker, e);
}

static int stream_wait(struct backend_stream *s, struct backend_marker *m, struct err *e)
{
    if (m->settled != BACKEND_PENDING) {
        return 0;
    }
    int rc = command_begin(s, e);
    if (rc != 0) {
        return rc;
    }
    cl_event last = m->events.item[m->events.count - 1].event;
    cl_event event = NULL;
    cl_int status = s->device->cl.EnqueueBarrierWithWaitList(s->queue, 1, &last, &event);
    return command_end(s, status, "clEnqueueBarrierWithWaitList", event, true, e);
}

/*
 * PoCL starts a command without predecessors when it is enqueued, and wakes all its threads for
 * each. On a busy processor these threads compete with this one for PoCL's lock. Behind a gate the
 * commands of a queue wait for each other and wake no thread. If the gate cannot be made, they
 * start at once.
 */
static void stream_gather(struct backend_stream *s)
{
    struct backend_device *d = s->device;
    cl_int rc = CL_SUCCESS;
    if (!d->info.cpu || s->gate || command_begin(s, NULL) != 0) {
        return;
    }
    cl_event gate = d->cl.CreateUserEvent(d->context, &rc);
    if (rc != CL_SUCCESS) {
        return;
    }
    cl_event behind = NULL;
    rc = d->cl.EnqueueBarrierWithWaitList(s->queue, 1, &gate, &behind);
    if (command_end(s, rc, "clEnqueueBarrierWithWaitList", behind, true, NULL) != 0) {
        (void)d->cl.SetUserEventStatus(gate, CL_COMPLETE);
        d->cl.ReleaseEvent(gate);
        return;
    }
    s->gate = gate;
}

static int stream_flush(struct backend_stream *s, struct err *e)
{
    gate_open(s);
    cl_int rc = s->device->cl.Flush(s->queue);
    return rc == CL_SUCCESS ? 0 : opencl_error(rc, "clFlush", e);
}

const struct backend_stream_ops opencl_stream_ops = {
    .create = stream_create,
    .destroy = stream_destroy,
    .write = stream_write,
    .read = stream_read,
    .copy = stream_copy,
    .fill = stream_fill,
    .launch = stream_launch,
    .mark = stream_mark,
    .mark_quiet = stream_mark_quiet,
    .gather = stream_gather,
    .wait = stream_wait,
    .flush = stream_flush,
};
