#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fakecuda/fake.h"

/* The operation that this thread carries out. */
static _Thread_local struct op *carried;
static struct sigaction segv_before, bus_before;

/* ---- operations ------------------------------------------------------------------------------ */

void *op_new(size_t size, CUresult (*run)(struct op *op))
{
    struct op *op = calloc(1, size);
    if (!op) {
        abort();
    }
    op->run = run;
    op->call = call_name();
    return op;
}

void op_span(struct op *op, uint64_t base, uint64_t size, bool write, bool host)
{
    struct span *spans = realloc(op->spans, (op->span_count + 1) * sizeof *spans);
    if (!spans) {
        abort();
    }
    op->spans = spans;
    spans[op->span_count++] =
        (struct span){.base = base, .size = size, .write = write, .host = host};
}

static void op_free(struct op *op, bool done)
{
    if (op->finish) {
        op->finish(op, done);
    }
    if (op->event) {
        event_unref(op->event);
    }
    if (op->other) {
        stream_unref(op->other);
    }
    free(op->spans);
    free(op);
}

static void append(struct stream *s, struct op *op)
{
    op->stream = s;
    op->seq = ++s->enqueued;
    if (s->tail) {
        s->tail->next = op;
    } else {
        s->head = op;
    }
    s->tail = op;
}

/* ---- a fault in a kernel or a copy ----------------------------------------------------------- */

/* The thread stays where it is for ever, as a kernel that has faulted never goes on. */
static void fault_park(int number)
{
    struct op *op = carried;
    if (!op) {
        sigaction(number, number == SIGSEGV ? &segv_before : &bus_before, NULL);
        return; /* no work of the double's: the fault happens again, with the handler of before */
    }
    pthread_mutex_lock(&fake.lock);
    note("%s: the enqueued work touched memory that is not there", op->call);
    context_poison(op->stream->object.context, CUDA_ERROR_ILLEGAL_ADDRESS);
    block_forever();
}

static void fault_catch(void)
{
    static bool caught;
    struct sigaction a = {.sa_handler = fault_park, .sa_flags = SA_NODEFER};
    if (!caught) {
        sigaction(SIGSEGV, &a, &segv_before);
        sigaction(SIGBUS, &a, &bus_before);
        caught = true;
    }
}

/* ---- the thread ------------------------------------------------------------------------------ */

static bool poisoned(const struct stream *s)
{
    return s->object.context->poison != CUDA_SUCCESS;
}

static bool spans_usable(const struct op *op)
{
    const struct context *c = op->copy ? NULL : op->stream->object.context;
    for (unsigned i = 0; i < op->span_count; i++) {
        const struct span *p = &op->spans[i];
        if (!p->host && !memory_usable(c, p->base, p->size, p->write)) {
            misuse("%s: the enqueued work uses memory %#llx that is gone", op->call,
                   (unsigned long long)p->base);
            return false;
        }
    }
    return true;
}

static void await_others(const struct op *op)
{
    while (!poisoned(op->stream) &&
           ((op->event && op->run == NULL && op->event->reached < op->generation) ||
            (op->other && op->other->completed < op->other_seq))) {
        pthread_cond_wait(&fake.changed, &fake.lock);
    }
}

/* A kernel or memset takes one of the device's units; the lock is given up while there is none. */
static void unit_take(const struct op *op)
{
    struct context *c = op->stream->object.context;
    while ((op->kernel || op->set) && fake.script.units > 0 && !poisoned(op->stream) &&
           c->running >= fake.script.units) {
        pthread_cond_wait(&fake.changed, &fake.lock);
    }
    c->running += op->kernel || op->set;
}

static void unit_give(const struct op *op)
{
    op->stream->object.context->running -= op->kernel || op->set;
}

static uint64_t cost_ns(const struct op *op)
{
    uint64_t ns = op->kernel ? fake.script.kernel_us * NS_PER_US : 0;
    if (fake.script.copy_rate > 0) {
        ns += (uint64_t)((double)op->cost_bytes * (double)NS_PER_SECOND /
                         (double)fake.script.copy_rate);
    }
    return ns;
}

static CUresult op_run(struct op *op)
{
    if (!spans_usable(op)) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    uint64_t ns = cost_ns(op);
    pthread_mutex_unlock(&fake.lock);
    pause_ns(fake.script.delay_us * NS_PER_US);
    carried = op;
    CUresult r = op->run(op);
    carried = NULL;
    pause_ns(ns);
    pthread_mutex_lock(&fake.lock);
    return r;
}

/* It has its unit. Whether it was done. */
static bool op_do(struct op *op)
{
    struct stream *s = op->stream;
    if (poisoned(s)) {
        return false;
    }
    if (op->action.act == ACT_STALL) {
        while (!poisoned(s)) {
            pthread_cond_wait(&fake.changed, &fake.lock);
        }
        return false;
    }
    CUresult r = op->action.act == ACT_FAULT ? op->action.code : CUDA_SUCCESS;
    if (r == CUDA_SUCCESS && op->run) {
        r = op_run(op);
    }
    if (r != CUDA_SUCCESS) {
        context_poison(s->object.context, r);
    }
    return r == CUDA_SUCCESS;
}

static bool op_carry(struct op *op)
{
    await_others(op);
    unit_take(op);
    bool done = op_do(op);
    unit_give(op);
    return done;
}

static void *stream_main(void *stream)
{
    struct stream *s = stream;
    pthread_mutex_lock(&fake.lock);
    struct context *c = s->object.context;
    while (s->head || !s->closing) {
        struct op *op = s->head;
        if (!op) {
            pthread_cond_wait(&s->wake, &fake.lock);
            continue;
        }
        bool done = op_carry(op);
        s->head = op->next;
        s->tail = s->head ? s->tail : NULL;
        s->completed = op->seq;
        op_free(op, done);
        pthread_cond_broadcast(&fake.changed);
    }
    c->threads--;
    stream_unref(s);
    pthread_cond_broadcast(&fake.changed);
    pthread_mutex_unlock(&fake.lock);
    return NULL;
}

static void stream_start(struct stream *s)
{
    pthread_attr_t attr;
    sigset_t all, before;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    fault_catch();
    s->started = true;
    s->refs++;
    s->object.context->threads++;
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&s->thread, &attr, stream_main, s) != 0) {
        abort();
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
}

/* ---- order among streams --------------------------------------------------------------------- */

static void wait_for(struct stream *s, struct stream *other)
{
    struct op *op;
    if (s == other || other->completed >= other->enqueued) {
        return;
    }
    op = op_new(sizeof *op, NULL);
    op->other = other;
    op->other_seq = other->enqueued;
    other->refs++;
    append(s, op);
}

struct legacy {
    struct stream *legacy;
    struct stream *only; /* NULL: all */
};

static void legacy_wait(struct object *o, void *data)
{
    const struct legacy *l = data;
    struct stream *s = (struct stream *)o;
    if (o->context == l->legacy->object.context && (s->flags & CU_STREAM_NON_BLOCKING) == 0) {
        wait_for(l->legacy, s);
    }
}

/* The legacy stream runs after all blocking streams, and they after it. */
static void order_legacy(struct stream *s)
{
    struct stream *legacy = s->object.context->legacy;
    if (s == legacy) {
        struct legacy l = {.legacy = legacy};
        object_each(KIND_STREAM, legacy_wait, &l);
    } else if ((s->flags & CU_STREAM_NON_BLOCKING) == 0) {
        wait_for(s, legacy);
    }
}

void op_enqueue(struct stream *s, struct op *op)
{
    op->action = call_action();
    order_legacy(s);
    append(s, op);
    if (!s->started) {
        stream_start(s);
    }
    pthread_cond_signal(&s->wake);
}

/* ---- waiting --------------------------------------------------------------------------------- */

CUresult stream_wait(struct stream *s, uint64_t seq)
{
    struct context *c = s->object.context;
    s->refs++;
    while (s->completed < seq && c->poison == CUDA_SUCCESS) {
        pthread_cond_wait(&fake.changed, &fake.lock);
    }
    stream_unref(s);
    return c->poison;
}

static void busy_find(struct object *o, void *data)
{
    struct stream **ret = data;
    struct stream *s = (struct stream *)o;
    if (!*ret && s->completed < s->enqueued) {
        *ret = s;
    }
}

struct seek {
    struct context *context;
    struct stream *busy;
};

static void busy_seek(struct object *o, void *data)
{
    struct seek *k = data;
    if (o->context == k->context) {
        busy_find(o, &k->busy);
    }
}

CUresult context_wait(struct context *c)
{
    struct seek k = {.context = c};
    while (c->poison == CUDA_SUCCESS) {
        k.busy = NULL;
        object_each(KIND_STREAM, busy_seek, &k);
        if (!k.busy) {
            break;
        }
        (void)stream_wait(k.busy, k.busy->enqueued);
    }
    return c->poison;
}

CUresult context_linger(uint64_t ns)
{
    struct context *c = context_current();
    if (ns == 0) {
        return CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&fake.lock);
    pause_ns(ns);
    pthread_mutex_lock(&fake.lock);
    return c ? context_wait(c) : CUDA_SUCCESS;
}

struct overlap {
    uint64_t base, size;
    struct op *op;
};

static void overlap_find(struct object *o, void *data)
{
    struct overlap *v = data;
    if (o->context->poison != CUDA_SUCCESS) {
        return; /* nothing runs there any more */
    }
    for (struct op *op = ((struct stream *)o)->head; op && !v->op; op = op->next) {
        for (unsigned i = 0; i < op->span_count; i++) {
            const struct span *p = &op->spans[i];
            if (p->base < v->base + v->size && v->base < p->base + p->size) {
                v->op = op;
            }
        }
    }
}

const char *memory_pending(uint64_t base, uint64_t size)
{
    struct overlap v = {.base = base, .size = size};
    object_each(KIND_STREAM, overlap_find, &v);
    return v.op ? v.op->call : NULL;
}

CUresult memory_wait(uint64_t base, uint64_t size)
{
    CUresult r = CUDA_SUCCESS;
    for (;;) {
        struct overlap v = {.base = base, .size = size};
        object_each(KIND_STREAM, overlap_find, &v);
        if (!v.op || r != CUDA_SUCCESS) {
            return r;
        }
        r = stream_wait(v.op->stream, v.op->seq);
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

struct stream *stream_create(struct context *c, unsigned flags, int priority)
{
    struct stream *s = calloc(1, sizeof *s);
    if (!s) {
        return NULL;
    }
    object_add(&s->object, KIND_STREAM, c);
    pthread_cond_init(&s->wake, NULL);
    s->refs = 1;
    s->flags = flags;
    s->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    return s;
}

void stream_unref(struct stream *s)
{
    if (--s->refs == 0) {
        object_remove(&s->object);
        pthread_cond_destroy(&s->wake);
        free(s);
    }
}

void stream_close(struct stream *s)
{
    s->closing = true;
    pthread_cond_signal(&s->wake);
    stream_unref(s);
}

struct stream *stream_of(CUstream handle, CUresult *ret_why)
{
    struct context *c = context_current();
    if (handle == NULL || handle == CU_STREAM_LEGACY) {
        return c->legacy;
    }
    if (handle == CU_STREAM_PER_THREAD) {
        return c->per_thread;
    }
    struct stream *s = object_get(handle, KIND_STREAM);
    if (s && s->closing) {
        misuse("%s: stream %p was destroyed before", call_name(), (void *)handle);
        s = NULL;
    }
    if (s && s->object.context != c) {
        misuse("%s: stream %p is of another context than the current one", call_name(),
               (void *)handle);
        s = NULL;
    }
    if (!s) {
        *ret_why = CUDA_ERROR_INVALID_HANDLE;
    }
    return s;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void kernel_seek(struct object *o, void *data)
{
    struct seek *k = data;
    struct stream *s = (struct stream *)o;
    for (const struct op *op = o->context == k->context ? s->head : NULL; op; op = op->next) {
        k->busy = op->kernel ? s : k->busy;
    }
}

/* The driver may let it wait for the kernel. */
static void create_check(struct context *c)
{
    struct seek k = {.context = c};
    object_each(KIND_STREAM, kernel_seek, &k);
    if (k.busy && c->poison == CUDA_SUCCESS) {
        misuse("%s: a kernel is pending, which it may wait for", call_name());
    }
}

static CUresult create(CUstream *ret, unsigned flags, int priority)
{
    struct stream *s = NULL;
    if ((flags & ~(unsigned)CU_STREAM_NON_BLOCKING) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    create_check(context_current());
    s = stream_create(context_current(), flags, priority);
    if (!s) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret = (CUstream)(uintptr_t)s->object.handle;
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *phStream, unsigned int flags)
{
    CUresult r = call_enter("cuStreamCreate", NEED_CONTEXT);
    return call_leave(r ? r : create(phStream, flags, 0));
}

CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
    CUresult r = call_enter("cuStreamCreateWithPriority", NEED_CONTEXT);
    return call_leave(r ? r : create(phStream, flags, priority));
}

/* Works in a context that is poisoned or not current, so that resources can be freed. */
CUresult cuStreamDestroy(CUstream handle)
{
    CUresult r = call_enter("cuStreamDestroy", NEED_CONTEXT);
    struct stream *s = NULL;
    if (r == CUDA_SUCCESS) {
        s = object_get(handle, KIND_STREAM);
        if (!s) {
            r = CUDA_ERROR_INVALID_HANDLE;
        } else if (s->closing) {
            misuse("cuStreamDestroy: stream %p was destroyed before", (void *)handle);
            r = CUDA_ERROR_INVALID_HANDLE;
        } else {
            stream_close(s);
        }
    }
    return call_leave(r);
}

CUresult cuStreamSynchronize(CUstream handle)
{
    CUresult r = call_enter("cuStreamSynchronize", NEED_CONTEXT);
    struct stream *s = r ? NULL : stream_of(handle, &r);
    r = s ? stream_wait(s, s->enqueued) : r;
    kernels_put_out();
    return call_leave(r);
}

CUresult cuStreamQuery(CUstream handle)
{
    CUresult r = call_enter("cuStreamQuery", NEED_CONTEXT);
    const struct stream *s = r ? NULL : stream_of(handle, &r);
    if (s && s->completed < s->enqueued) {
        r = CUDA_ERROR_NOT_READY;
    }
    return call_leave(r);
}

CUresult cuStreamGetPriority(CUstream handle, int *priority)
{
    CUresult r = call_enter("cuStreamGetPriority", NEED_CONTEXT);
    const struct stream *s = r ? NULL : stream_of(handle, &r);
    if (s) {
        *priority = s->priority;
    }
    return call_leave(r);
}

CUresult cuStreamGetFlags(CUstream handle, unsigned int *flags)
{
    CUresult r = call_enter("cuStreamGetFlags", NEED_CONTEXT);
    const struct stream *s = r ? NULL : stream_of(handle, &r);
    if (s) {
        *flags = s->flags;
    }
    return call_leave(r);
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *pctx)
{
    CUresult r = call_enter("cuStreamGetCtx", NEED_CONTEXT);
    const struct stream *s = r ? NULL : stream_of(handle, &r);
    if (s) {
        *pctx = (CUcontext)(uintptr_t)s->object.context->object.handle;
    }
    return call_leave(r);
}

struct call_op {
    struct op op;
    CUhostFn fn;
    void *data;
};

static CUresult callback_run(struct op *op)
{
    const struct call_op *c = (const struct call_op *)op;
    host_callback(true);
    c->fn(c->data);
    host_callback(false);
    return CUDA_SUCCESS;
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn fn, void *data)
{
    CUresult r = call_enter("cuLaunchHostFunc", NEED_CONTEXT);
    struct stream *s = r ? NULL : stream_of(handle, &r);
    if (s && !fn) {
        r = CUDA_ERROR_INVALID_VALUE;
    } else if (s) {
        struct call_op *c = op_new(sizeof *c, callback_run);
        c->fn = fn;
        c->data = data;
        op_enqueue(s, &c->op);
    }
    return call_leave(r);
}
