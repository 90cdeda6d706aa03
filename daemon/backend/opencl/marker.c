#include <stdlib.h>

#include "common/clock.h"
#include "daemon/backend/opencl/marker.h"

static void CL_CALLBACK event_done(cl_event event, cl_int status, void *data)
{
    (void)event;
    (void)status;
    struct opencl_wake *w = data;
    pthread_mutex_lock(&w->lock);
    if (w->wake) {
        w->wake(w->data);
    }
    atomic_fetch_sub(&w->pending, 1);
    pthread_cond_signal(&w->idle);
    pthread_mutex_unlock(&w->lock);
}

static int callback_set(struct backend_device *d, cl_event event, struct err *e)
{
    /* without the lock, because a woken thread may preempt this one */
    atomic_fetch_add(&d->wake->pending, 1);
    cl_int rc = d->cl.SetEventCallback(event, CL_COMPLETE, event_done, d->wake);
    if (rc == CL_SUCCESS) {
        return 0;
    }
    atomic_fetch_sub(&d->wake->pending, 1);
    return opencl_error(rc, "clSetEventCallback", e);
}

void opencl_events_finish(const struct opencl_api *cl, struct opencl_events *events)
{
    for (unsigned i = 0; i < events->count; i++) {
        cl->ReleaseEvent(events->item[i].event);
    }
    free(events->item);
    *events = (struct opencl_events){0};
}

int opencl_mark(struct backend_device *d, struct opencl_events *events, uint64_t enqueued_ns,
                bool wakes, struct backend_marker **ret_marker, struct err *e)
{
    struct backend_marker *m = calloc(1, sizeof *m);
    if (!m) {
        return err_set(e, ERR_NOMEM, "no memory for a marker");
    }
    cl_event last = events->item[events->count - 1].event;
    int rc = wakes ? callback_set(d, last, e) : 0;
    if (rc != 0) {
        free(m);
        return rc;
    }
    m->device = d;
    m->events = *events;
    m->enqueued_ns = enqueued_ns;
    *events = (struct opencl_events){0};
    *ret_marker = m;
    return 0;
}

/* CL_COMPLETE (0), a larger number if the command waits or runs, or a negative error. An event
 * whose query fails counts as waiting. */
static cl_int event_status(const struct backend_device *d, cl_event event)
{
    cl_int status = CL_QUEUED;
    cl_int rc =
        d->cl.GetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    return rc == CL_SUCCESS ? status : CL_QUEUED;
}

/* When the last event has ended, all have. A driver may go on after a failed command, so each
 * event is then queried. */
static enum backend_state marker_settle(struct backend_marker *m)
{
    cl_int last = event_status(m->device, m->events.item[m->events.count - 1].event);
    if (last > CL_COMPLETE) {
        cl_int first = event_status(m->device, m->events.item[0].event);
        return first <= CL_RUNNING ? BACKEND_RUNNING : BACKEND_PENDING;
    }
    m->settled = BACKEND_DONE;
    for (unsigned i = 0; i < m->events.count; i++) {
        cl_int status = event_status(m->device, m->events.item[i].event);
        if (status < 0) {
            m->settled = BACKEND_FAILED;
            m->failure = status;
            break;
        }
    }
    return m->settled;
}

static enum backend_state marker_state(struct backend_marker *m, struct err *e)
{
    enum backend_state state = m->settled == BACKEND_PENDING ? marker_settle(m) : m->settled;
    if (state == BACKEND_FAILED) {
        opencl_command_error(m->failure, e);
    }
    return state;
}

static uint64_t event_time(const struct backend_device *d, cl_event event, cl_profiling_info what)
{
    cl_ulong ns = 0;
    cl_int rc = d->cl.GetEventProfilingInfo(event, what, sizeof ns, &ns, NULL);
    return rc == CL_SUCCESS ? ns : 0;
}

/*
 * Corrects the distance of the host's clock from the device's clock, which drift apart. The host's
 * time before a command is enqueued and the device's time at which it is queued differ only by the
 * call, so each marker gives an estimate of the distance.
 *
 * An estimate can only be too small, if the thread was preempted in the call. A larger one
 * therefore counts at once, and a smaller one slowly: the distance shrinks by no more than a part
 * of the time that has passed on the device, so that a later end remains later.
 */
static void clock_adjust(struct backend_marker *m, uint64_t end)
{
    struct backend_device *d = m->device;
    uint64_t queued =
        event_time(d, m->events.item[m->events.count - 1].event, CL_PROFILING_COMMAND_QUEUED);
    if (queued == 0) {
        return;
    }
    int64_t offset = (int64_t)(m->enqueued_ns - queued);
    int64_t change = offset - d->clock_offset;
    int64_t passed = end > d->clock_end ? (int64_t)(end - d->clock_end) : 0;
    if (d->clock_offset != 0 && change < 0) {
        change = -change < passed ? change / 256 : -passed / 256;
    }
    d->clock_offset += change;
    d->clock_end += (uint64_t)passed;
}

static void marker_times(struct backend_marker *m, uint64_t *ret_begin_ns, uint64_t *ret_end_ns)
{
    struct backend_device *d = m->device;
    uint64_t end =
        event_time(d, m->events.item[m->events.count - 1].event, CL_PROFILING_COMMAND_END);
    clock_adjust(m, end);
    uint64_t begin = end;
    for (unsigned i = 0; i < m->events.count; i++) {
        if (!m->events.item[i].wait) {
            begin = event_time(d, m->events.item[i].event, CL_PROFILING_COMMAND_START);
            break;
        }
    }
    *ret_begin_ns = (begin < end ? begin : end) + (uint64_t)d->clock_offset;
    *ret_end_ns = end + (uint64_t)d->clock_offset;
}

static void marker_release(struct backend_marker *m)
{
    if (!m) {
        return;
    }
    opencl_events_finish(&m->device->cl, &m->events);
    free(m);
}

static int marker_arm(struct backend_marker *m, struct err *e)
{
    return callback_set(m->device, m->events.item[m->events.count - 1].event, e);
}

const struct backend_marker_ops opencl_marker_ops = {
    .state = marker_state,
    .times = marker_times,
    .release = marker_release,
    .arm = marker_arm,
};
