#include <stdlib.h>

#include "tests/fakecuda/fake.h"

#define FLAGS_KNOWN (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)

void event_unref(struct event *e)
{
    if (--e->refs == 0) {
        free(e);
    }
}

static CUresult create(CUevent *ret, unsigned flags)
{
    if ((flags & ~(unsigned)FLAGS_KNOWN) != 0 ||
        ((flags & CU_EVENT_INTERPROCESS) != 0 && (flags & CU_EVENT_DISABLE_TIMING) == 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct event *e = calloc(1, sizeof *e);
    if (!e) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    object_add(&e->object, KIND_EVENT, context_current());
    e->refs = 1;
    e->flags = flags;
    *ret = (CUevent)(uintptr_t)e->object.handle;
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *phEvent, unsigned int flags)
{
    CUresult r = call_enter("cuEventCreate", NEED_CONTEXT);
    return call_leave(r ? r : create(phEvent, flags));
}

CUresult cuEventDestroy(CUevent handle)
{
    CUresult r = call_enter("cuEventDestroy", NEED_CONTEXT);
    struct event *e = r ? NULL : object_get(handle, KIND_EVENT);
    if (e) {
        object_remove(&e->object);
        event_unref(e);
    } else if (r == CUDA_SUCCESS) {
        r = CUDA_ERROR_INVALID_HANDLE;
    }
    return call_leave(r);
}

/* ---- recording ------------------------------------------------------------------------------- */

static CUresult record_run(struct op *op)
{
    (void)op;
    return CUDA_SUCCESS;
}

/* A later record may pass on another stream before an earlier one does: the later one counts. */
static void record_finish(struct op *op, bool done)
{
    if (done && op->event->reached < op->generation) {
        op->event->time_ns = clock_ns();
        op->event->reached = op->generation;
    }
}

static CUresult record(CUevent handle, CUstream stream)
{
    CUresult why = CUDA_SUCCESS;
    struct event *e = object_get(handle, KIND_EVENT);
    struct stream *s = e ? stream_of(stream, &why) : NULL;
    if (!e || !s) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (e->object.context != s->object.context) {
        misuse("cuEventRecord: event %p is of another context than the stream", (void *)handle);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    struct op *op = op_new(sizeof *op, record_run);
    op->finish = record_finish;
    op->event = e;
    op->generation = ++e->asked;
    e->refs++;
    op_enqueue(s, op);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent hEvent, CUstream hStream)
{
    CUresult r = call_enter("cuEventRecord", NEED_CONTEXT);
    return call_leave(r ? r : record(hEvent, hStream));
}

CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
    CUresult r = call_enter("cuEventRecordWithFlags", NEED_CONTEXT);
    (void)flags;
    return call_leave(r ? r : record(hEvent, hStream));
}

/* ---- waiting --------------------------------------------------------------------------------- */

static CUresult wait(CUstream stream, CUevent handle)
{
    CUresult why = CUDA_SUCCESS;
    struct stream *s = stream_of(stream, &why);
    struct event *e = s ? object_get(handle, KIND_EVENT) : NULL;
    if (!e || !s) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (e->reached == e->asked) {
        return CUDA_SUCCESS; /* never recorded, or passed */
    }
    struct op *op = op_new(sizeof *op, NULL);
    op->event = e;
    op->generation = e->asked;
    e->refs++;
    op_enqueue(s, op);
    return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    CUresult r = call_enter("cuStreamWaitEvent", NEED_CONTEXT);
    (void)Flags;
    return call_leave(r ? r : wait(hStream, hEvent));
}

CUresult cuEventQuery(CUevent handle)
{
    CUresult r = call_enter("cuEventQuery", NEED_CONTEXT);
    const struct event *e = r ? NULL : object_get(handle, KIND_EVENT);
    if (e) {
        r = e->reached < e->asked ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
    } else if (r == CUDA_SUCCESS) {
        r = CUDA_ERROR_INVALID_HANDLE;
    }
    return call_leave(r);
}

static CUresult synchronize(struct event *e)
{
    struct context *c = e->object.context;
    uint64_t generation = e->asked;
    e->refs++;
    while (e->reached < generation && c->poison == CUDA_SUCCESS) {
        pthread_cond_wait(&fake.changed, &fake.lock);
    }
    event_unref(e);
    return c->poison;
}

CUresult cuEventSynchronize(CUevent handle)
{
    CUresult r = call_enter("cuEventSynchronize", NEED_CONTEXT);
    struct event *e = r ? NULL : object_get(handle, KIND_EVENT);
    if (r == CUDA_SUCCESS) {
        r = e ? synchronize(e) : CUDA_ERROR_INVALID_HANDLE;
        kernels_put_out();
    }
    return call_leave(r);
}

static CUresult elapsed(float *ret, CUevent start, CUevent end)
{
    const struct event *a = object_get(start, KIND_EVENT);
    const struct event *b = object_get(end, KIND_EVENT);
    if (!a || !b || a->asked == 0 || b->asked == 0 ||
        ((a->flags | b->flags) & CU_EVENT_DISABLE_TIMING) != 0) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (a->reached < a->asked || b->reached < b->asked) {
        return CUDA_ERROR_NOT_READY;
    }
    *ret = (float)(((double)b->time_ns - (double)a->time_ns) / 1e6);
    return CUDA_SUCCESS;
}

#undef cuEventElapsedTime
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end);
__attribute__((visibility("default"))) CUresult cuEventElapsedTime(float *ms, CUevent start,
                                                                   CUevent end)
{
    CUresult r = call_enter("cuEventElapsedTime", NEED_CONTEXT);
    return call_leave(r ? r : elapsed(ms, start, end));
}

#if CUDA_VERSION >= 12080
CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
    CUresult r = call_enter("cuEventElapsedTime", NEED_CONTEXT);
    return call_leave(r ? r : elapsed(ms, start, end));
}
#endif
