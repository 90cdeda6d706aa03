#include "daemon/backend/cuda/run/stream.h"

int cuda_event_take(struct backend_device *d, CUevent *ret_event, struct err *e)
{
    if (d->event_count > 0) {
        *ret_event = d->event[--d->event_count];
        return 0;
    }
    return CUDA_CALL(&d->cu, e, EventCreate, ret_event, CU_EVENT_DEFAULT);
}

void cuda_event_give(struct backend_device *d, CUevent event)
{
    if (event && d->event_count < CUDA_EVENTS_KEPT) {
        d->event[d->event_count++] = event;
    } else if (event) {
        d->cu.EventDestroy(event);
    }
}

int cuda_blame(const char *kernel, int rc, struct err *e)
{
    if (rc == ERR_KERNEL_FAULT && kernel[0]) {
        (void)err_wrap(e, "kernel %s or what ran beside it", kernel);
    }
    return rc;
}

int cuda_stream_begin(struct backend_stream *s, struct err *e)
{
    if (s->begin) {
        return 0;
    }
    CUevent event = NULL;
    int rc = cuda_event_take(s->device, &event, e);
    rc = rc == 0 ? CUDA_CALL(&s->device->cu, e, EventRecord, event, s->stream) : rc;
    if (rc != 0) {
        cuda_event_give(s->device, event);
        return rc;
    }
    s->begin = event;
    return 0;
}
