#include <stdlib.h>
#include <string.h>

#include "daemon/backend/cuda/run/stream.h"

int cuda_mark(struct backend_stream *s, struct backend_marker **ret_marker, struct err *e)
{
    struct backend_device *d = s->device;
    struct backend_marker *m = calloc(1, sizeof *m);
    if (!m) {
        return err_set(e, ERR_NOMEM, "no memory for a marker");
    }
    int rc = cuda_event_take(d, &m->end, e);
    rc = rc == 0 ? CUDA_CALL(&d->cu, e, EventRecord, m->end, s->stream) : rc;
    if (rc != 0) {
        cuda_event_give(d, m->end);
        free(m);
        return cuda_blame(s->blamed, rc, e);
    }
    m->device = d;
    m->stream = s;
    m->begin = s->begin;
    memcpy(m->blamed, s->blamed, sizeof m->blamed);
    s->begin = NULL;
    s->blamed[0] = '\0';
    cuda_clock_tick(&d->clock);
    *ret_marker = m;
    return 0;
}

/* An error that is neither a kernel's fault nor the device's may come from the query itself. The
 * commands may still run, and only the end of the process stops them. */
static void failure_report(const struct backend_marker *m, struct err *e)
{
    int rc = cuda_error(m->failure, "cuEventQuery", e);
    if (rc != ERR_KERNEL_FAULT && e) {
        e->code = ERR_DEVICE_LOST;
    }
    (void)cuda_blame(m->blamed, rc, e);
}

static enum backend_state marker_state(struct backend_marker *m, struct err *e)
{
    const struct cuda_driver *cu = &m->device->cu;
    if (m->settled == BACKEND_PENDING || m->settled == BACKEND_RUNNING) {
        CUresult rc = cu->EventQuery(m->end);
        if (rc == CUDA_SUCCESS) {
            m->settled = BACKEND_DONE;
        } else if (rc != CUDA_ERROR_NOT_READY) {
            m->settled = BACKEND_FAILED;
            m->failure = rc;
        } else if (m->settled == BACKEND_PENDING && m->begin &&
                   cu->EventQuery(m->begin) == CUDA_SUCCESS) {
            m->settled = BACKEND_RUNNING;
        }
    }
    if (m->settled == BACKEND_FAILED) {
        failure_report(m, e);
    }
    return m->settled;
}

static void marker_times(struct backend_marker *m, uint64_t *ret_begin_ns, uint64_t *ret_end_ns)
{
    struct cuda_clock *clock = &m->device->clock;
    cuda_clock_tick(clock);
    uint64_t end = cuda_clock_of(clock, m->end);
    uint64_t begin = m->begin ? cuda_clock_of(clock, m->begin) : end;
    *ret_begin_ns = begin < end ? begin : end;
    *ret_end_ns = end;
}

static void marker_release(struct backend_marker *m)
{
    if (!m) {
        return;
    }
    cuda_event_give(m->device, m->begin);
    cuda_event_give(m->device, m->end);
    free(m);
}

static void CUDA_CB on_passed(void *device)
{
    struct backend_device *d = device;
    d->wake(d->wake_data);
}

static int marker_arm(struct backend_marker *m, struct err *e)
{
    struct backend_device *d = m->device;
    CUstream bell = m->stream->bell;
    if (!bell) {
        return err_set(e, ERR_UNSUPPORTED, "this stream has no callbacks");
    }
    int rc = CUDA_CALL(&d->cu, e, StreamWaitEvent, bell, m->end, 0);
    return rc == 0 ? CUDA_CALL(&d->cu, e, LaunchHostFunc, bell, on_passed, d) : rc;
}

const struct backend_marker_ops cuda_marker_ops = {
    .state = marker_state,
    .times = marker_times,
    .release = marker_release,
    .arm = marker_arm,
};
