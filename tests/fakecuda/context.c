#include <stdlib.h>
#include <string.h>

#include "tests/fakecuda/fake.h"

#define STACK_MAX 16u

/* The contexts that a thread has pushed, as handles: one may have been destroyed since. */
static _Thread_local struct {
    uint64_t handle[STACK_MAX];
    unsigned count;
} stack;

static struct context *graveyard;

static void *handle_of(const struct context *c)
{
    return c ? (void *)(uintptr_t)c->object.handle : NULL;
}

struct context *context_current(void)
{
    if (stack.count == 0 || stack.handle[stack.count - 1] == 0) {
        return NULL;
    }
    return object_peek((void *)(uintptr_t)stack.handle[stack.count - 1], KIND_CONTEXT);
}

void context_poison(struct context *c, CUresult code)
{
    if (c->poison == CUDA_SUCCESS) {
        c->poison = code;
        note("context of device %d failed with %d", c->device->index, (int)code);
    }
    pthread_cond_broadcast(&fake.changed);
}

/* ---- life ------------------------------------------------------------------------------------ */

static CUresult context_create(struct device *d, unsigned flags, struct context **ret_context)
{
    CUresult r = device_take(d, fake.script.context);
    struct context *c = r == CUDA_SUCCESS ? calloc(1, sizeof *c) : NULL;
    if (!c) {
        return r == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : r;
    }
    object_add(&c->object, KIND_CONTEXT, NULL);
    c->device = d;
    c->flags = flags;
    c->limit[CU_LIMIT_STACK_SIZE] = 1024;
    c->limit[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
    c->limit[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
    c->legacy = stream_create(c, CU_STREAM_DEFAULT, 0);
    c->per_thread = stream_create(c, CU_STREAM_DEFAULT, 0);
    if (!c->legacy || !c->per_thread) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_context = c;
    return CUDA_SUCCESS;
}

struct drop {
    struct context *context;
    bool tell;
};

static bool dropped(const struct object *o, const struct drop *d)
{
    bool mine = o->context == d->context;
    if (mine && d->tell) {
        leak("%s %#llx, left in a context that was destroyed", kind_name(o->kind),
             (unsigned long long)o->handle);
    }
    return mine;
}

static void stream_drop(struct object *o, void *data)
{
    struct stream *s = (struct stream *)o;
    const struct drop *d = data;
    bool own = s == d->context->legacy || s == d->context->per_thread;
    if (o->context == d->context && !s->closing && (own || dropped(o, d))) {
        stream_close(s);
    }
}

static void event_drop(struct object *o, void *data)
{
    if (dropped(o, data)) {
        object_remove(o);
        event_unref((struct event *)o);
    }
}

static void module_drop_each(struct object *o, void *data)
{
    if (dropped(o, data)) {
        module_drop((struct module *)o);
    }
}

/* Waits for its work, as the driver does. Objects left in it are leaks and are freed with it. */
static void context_destroy(struct context *c)
{
    struct drop d = {.context = c, .tell = c->poison == CUDA_SUCCESS};
    (void)context_wait(c);
    d.tell = d.tell && c->poison == CUDA_SUCCESS;
    object_each(KIND_EVENT, event_drop, &d);
    object_each(KIND_STREAM, stream_drop, &d);
    object_each(KIND_MODULE, module_drop_each, &d);
    memory_drop_context(c);
    c->device->used -= fake.script.context;
    object_remove(&c->object);
    if (c->poison != CUDA_SUCCESS) {
        c->next = graveyard; /* a thread may be stuck in it for ever */
        graveyard = c;
        return;
    }
    while (c->threads > 0) {
        pthread_cond_wait(&fake.changed, &fake.lock);
    }
    free(c);
}

/* ---- the current one ------------------------------------------------------------------------- */

static CUresult push(CUcontext handle)
{
    if (stack.count == STACK_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (handle && !object_get(handle, KIND_CONTEXT)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    stack.handle[stack.count++] = (uint64_t)(uintptr_t)handle;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext ctx)
{
    CUresult r = call_enter("cuCtxPushCurrent", NEED_INIT);
    return call_leave(r ? r : push(ctx));
}

CUresult cuCtxPopCurrent(CUcontext *pctx)
{
    CUresult r = call_enter("cuCtxPopCurrent", NEED_INIT);
    if (r == CUDA_SUCCESS && stack.count == 0) {
        misuse("cuCtxPopCurrent: there is none");
        r = CUDA_ERROR_INVALID_CONTEXT;
    }
    if (r == CUDA_SUCCESS) {
        stack.count--;
        if (pctx) {
            *pctx = (CUcontext)(uintptr_t)stack.handle[stack.count];
        }
    }
    return call_leave(r);
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
    CUresult r = call_enter("cuCtxSetCurrent", NEED_INIT);
    unsigned before = stack.count;
    if (r == CUDA_SUCCESS) {
        stack.count -= stack.count > 0;
        r = ctx ? push(ctx) : CUDA_SUCCESS;
        stack.count = r ? before : stack.count;
    }
    return call_leave(r);
}

CUresult cuCtxGetCurrent(CUcontext *pctx)
{
    CUresult r = call_enter("cuCtxGetCurrent", NEED_INIT);
    if (r == CUDA_SUCCESS) {
        *pctx = handle_of(context_current());
    }
    return call_leave(r);
}

/* ---- made by hand ---------------------------------------------------------------------------- */

static CUresult create(CUcontext *pctx, unsigned flags, CUdevice dev)
{
    struct context *c = NULL;
    CUresult r = context_create(device_at(dev), flags, &c);
    r = r ? r : push(handle_of(c));
    if (r == CUDA_SUCCESS) {
        *pctx = handle_of(c);
    }
    return r;
}

#undef cuCtxCreate
CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned flags, CUdevice dev);
__attribute__((visibility("default"))) CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned flags,
                                                               CUdevice dev)
{
    CUresult r = call_enter_device("cuCtxCreate", NEED_INIT, dev);
    return call_leave(r ? r : create(pctx, flags, dev));
}

#if CUDA_VERSION >= 12050
CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *params, unsigned flags, CUdevice dev)
{
    CUresult r = call_enter_device("cuCtxCreate", NEED_INIT, dev);
    (void)params;
    return call_leave(r ? r : create(pctx, flags, dev));
}
#endif

static CUresult destroy(CUcontext handle)
{
    struct context *c = object_get(handle, KIND_CONTEXT);
    if (!c) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (c->primary) {
        misuse("cuCtxDestroy: the context is a primary one, to be released");
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (context_current() == c) {
        stack.count--;
    }
    CUresult poison = c->poison;
    context_destroy(c);
    return poison;
}

CUresult cuCtxDestroy(CUcontext ctx)
{
    CUresult r = call_enter("cuCtxDestroy", NEED_INIT);
    return call_leave(r ? r : destroy(ctx));
}

/* ---- the primary one ------------------------------------------------------------------------- */

static CUresult primary_retain(struct device *d, CUcontext *pctx)
{
    if (!d->primary) {
        struct context *c = NULL;
        CUresult r = context_create(d, d->primary_flags, &c);
        if (r != CUDA_SUCCESS) {
            return r;
        }
        c->primary = true;
        d->primary = c;
    }
    d->primary->refs++;
    *pctx = handle_of(d->primary);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    CUresult r = call_enter_device("cuDevicePrimaryCtxRetain", NEED_INIT, dev);
    return call_leave(r ? r : primary_retain(device_at(dev), pctx));
}

static CUresult primary_release(struct device *d)
{
    if (!d->primary) {
        misuse("cuDevicePrimaryCtxRelease: the primary context of device %d is not retained",
               d->index);
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (--d->primary->refs == 0) {
        struct context *c = d->primary;
        d->primary = NULL;
        context_destroy(c);
    }
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
    CUresult r = call_enter_device("cuDevicePrimaryCtxRelease", NEED_INIT, dev);
    return call_leave(r ? r : primary_release(device_at(dev)));
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
    CUresult r = call_enter_device("cuDevicePrimaryCtxReset", NEED_INIT, dev);
    struct device *d = device_at(dev);
    if (r == CUDA_SUCCESS && d->primary) {
        struct context *c = d->primary;
        d->primary = NULL;
        context_destroy(c);
    }
    return call_leave(r);
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
    CUresult r = call_enter_device("cuDevicePrimaryCtxSetFlags", NEED_INIT, dev);
    if (r == CUDA_SUCCESS && (flags & ~(unsigned)CU_CTX_FLAGS_MASK) != 0) {
        r = CUDA_ERROR_INVALID_VALUE;
    }
    if (r == CUDA_SUCCESS) {
        device_at(dev)->primary_flags = flags;
    }
    return call_leave(r);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
    CUresult r = call_enter_device("cuDevicePrimaryCtxGetState", NEED_INIT, dev);
    if (r == CUDA_SUCCESS) {
        *flags = device_at(dev)->primary_flags;
        *active = device_at(dev)->primary != NULL;
    }
    return call_leave(r);
}

/* ---- what is asked of the current one -------------------------------------------------------- */

CUresult cuCtxGetDevice(CUdevice *device)
{
    CUresult r = call_enter("cuCtxGetDevice", NEED_CONTEXT);
    if (r == CUDA_SUCCESS) {
        *device = context_current()->device->index;
    }
    return call_leave(r);
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
    CUresult r = call_enter("cuCtxGetFlags", NEED_CONTEXT);
    if (r == CUDA_SUCCESS) {
        *flags = context_current()->flags;
    }
    return call_leave(r);
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
    CUresult r = call_enter("cuCtxGetApiVersion", NEED_INIT);
    if (r == CUDA_SUCCESS && ctx && !object_get(ctx, KIND_CONTEXT)) {
        r = CUDA_ERROR_INVALID_CONTEXT;
    }
    if (r == CUDA_SUCCESS) {
        *version = 3020;
    }
    return call_leave(r);
}

CUresult cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
    CUresult r = call_enter("cuCtxGetLimit", NEED_CONTEXT);
    if (r == CUDA_SUCCESS && (unsigned)limit >= CU_LIMIT_MAX) {
        r = CUDA_ERROR_UNSUPPORTED_LIMIT;
    }
    if (r == CUDA_SUCCESS) {
        *pvalue = context_current()->limit[limit];
    }
    return call_leave(r);
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    CUresult r = call_enter("cuCtxSetLimit", NEED_CONTEXT);
    if (r == CUDA_SUCCESS && (unsigned)limit >= CU_LIMIT_MAX) {
        r = CUDA_ERROR_UNSUPPORTED_LIMIT;
    }
    if (r == CUDA_SUCCESS) {
        context_current()->limit[limit] = value;
    }
    return call_leave(r);
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    CUresult r = call_enter("cuCtxGetStreamPriorityRange", NEED_CONTEXT);
    if (r == CUDA_SUCCESS && least) {
        *least = 0;
    }
    if (r == CUDA_SUCCESS && greatest) {
        *greatest = -5;
    }
    return call_leave(r);
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
    (void)config;
    return call_leave(call_enter("cuCtxSetCacheConfig", NEED_CONTEXT));
}

CUresult cuCtxResetPersistingL2Cache(void)
{
    return call_leave(call_enter("cuCtxResetPersistingL2Cache", NEED_CONTEXT));
}

#undef cuCtxSynchronize
__attribute__((visibility("default"))) CUresult cuCtxSynchronize(void)
{
    CUresult r = call_enter("cuCtxSynchronize", NEED_CONTEXT);
    return call_leave(r ? r : context_wait(context_current()));
}

/* ---- peers ----------------------------------------------------------------------------------- */

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    CUresult r = call_enter("cuCtxEnablePeerAccess", NEED_CONTEXT);
    const struct context *other = r ? NULL : object_get(peer, KIND_CONTEXT);
    struct context *c = context_current();
    if (r == CUDA_SUCCESS && !other) {
        r = CUDA_ERROR_INVALID_CONTEXT;
    } else if (r == CUDA_SUCCESS && (flags != 0 || other == c)) {
        r = CUDA_ERROR_INVALID_VALUE;
    } else if (r == CUDA_SUCCESS && (!fake.script.peer || other->device == c->device)) {
        r = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    } else if (r == CUDA_SUCCESS && (c->peers >> other->device->index & 1u) != 0) {
        r = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    } else if (r == CUDA_SUCCESS) {
        c->peers |= UINT64_C(1) << other->device->index;
    }
    return call_leave(r);
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    CUresult r = call_enter("cuCtxDisablePeerAccess", NEED_CONTEXT);
    const struct context *other = r ? NULL : object_get(peer, KIND_CONTEXT);
    if (r == CUDA_SUCCESS && !other) {
        r = CUDA_ERROR_INVALID_CONTEXT;
    } else if (r == CUDA_SUCCESS && (context_current()->peers >> other->device->index & 1u) == 0) {
        r = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    } else if (r == CUDA_SUCCESS) {
        context_current()->peers &= ~(UINT64_C(1) << other->device->index);
    }
    return call_leave(r);
}
