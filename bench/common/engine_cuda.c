/* CUDA's driver API in this process: the primary context and one stream, like a program that has
 * the device for itself. libcuda is opened at run time, not linked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/common/echo.h"
#include "bench/common/plan.h"
#include "daemon/backend/cuda/driver/driver.h"

#define PAGE 4096u

struct engine {
    struct cuda_driver cu;
    CUdevice device;
    CUcontext context;
    CUstream stream;
    CUmodule module;
    CUfunction kernel[PLAN_KERNELS];
};

struct work {
    struct engine *e;
    const struct plan *plan;
    CUdeviceptr buffer[PLAN_BUFFERS];
    void *in[PLAN_BUFFERS];  /* sources of writes, registered */
    void *out[PLAN_SLOTS];   /* destinations of reads, registered */
    CUevent end[PLAN_SLOTS]; /* of a slot's last step */
};

struct engine_memory {
    struct engine *e;
    CUdeviceptr memory;
};

static void must(CUresult rc, const char *what)
{
    if (rc != CUDA_SUCCESS) {
        bench_die("CUDA: %s: %d", what, (int)rc);
    }
}

/* ---- the device ---------------------------------------------------------------------------- */

static void find_kernels(struct engine *e)
{
    CUfunction found[2 * PLAN_KERNELS];
    unsigned count = 0;
    must(e->cu.ModuleGetFunctionCount(&count, e->module), "kernels");
    if (count > sizeof found / sizeof found[0]) {
        bench_die("%u kernels in the device code", count);
    }
    must(e->cu.ModuleEnumerateFunctions(found, count, e->module), "kernels");
    for (unsigned i = 0; i < count; i++) {
        const char *name = NULL;
        must(e->cu.FuncGetName(&name, found[i]), "a kernel's name");
        for (unsigned k = 0; k < PLAN_KERNELS; k++) {
            if (strcmp(name, plan_kernel_names[k]) == 0) {
                e->kernel[k] = found[i];
            }
        }
    }
    for (unsigned k = 0; k < PLAN_KERNELS; k++) {
        if (e->kernel[k] == NULL) {
            bench_die("the device code has no kernel %s", plan_kernel_names[k]);
        }
    }
}

static struct engine *open_engine(const char *address, const char **ret_why)
{
    static struct err why;
    size_t size = 0;
    struct engine *e = calloc(1, sizeof *e);
    (void)address;
    if (e == NULL) {
        bench_die("no memory");
    }
    why = (struct err)ERR_INIT;
    if (cuda_driver_load(&e->cu, &why) != 0) {
        *ret_why = why.text;
        free(e);
        return NULL;
    }
    void *code = plan_device_code(&size);
    must(e->cu.DeviceGet(&e->device, 0), "a device");
    must(e->cu.DevicePrimaryCtxRetain(&e->context, e->device), "a context");
    must(e->cu.CtxSetCurrent(e->context), "a context");
    must(e->cu.StreamCreateWithPriority(&e->stream, CU_STREAM_NON_BLOCKING, 0), "a stream");
    must(e->cu.ModuleLoadDataEx(&e->module, code, 0, NULL, NULL), "device code");
    free(code);
    find_kernels(e);
    return e;
}

static void close_engine(struct engine *e)
{
    must(e->cu.StreamSynchronize(e->stream), "the end");
    must(e->cu.ModuleUnload(e->module), "device code");
    must(e->cu.StreamDestroy(e->stream), "a stream");
    must(e->cu.DevicePrimaryCtxRelease(e->device), "a context");
    free(e);
}

/* ---- memory -------------------------------------------------------------------------------- */

static void *host_alloc(struct engine *e, size_t bytes)
{
    size_t whole = (bytes + PAGE - 1) / PAGE * PAGE;
    void *memory = aligned_alloc(PAGE, whole);
    if (memory == NULL) {
        bench_die("no memory for %zu bytes", bytes);
    }
    must(e->cu.MemHostRegister(memory, whole, 0), "registering memory");
    return memory;
}

static void host_free(struct engine *e, void *memory)
{
    if (memory != NULL) {
        must(e->cu.MemHostUnregister(memory), "memory");
        free(memory);
    }
}

static struct engine_memory *alloc(struct engine *e, size_t bytes)
{
    struct engine_memory *m = calloc(1, sizeof *m);
    if (m == NULL) {
        bench_die("no memory");
    }
    m->e = e;
    must(e->cu.MemAlloc(&m->memory, bytes), "a buffer");
    return m;
}

static void write_device(struct engine *e, CUdeviceptr to, const void *data, size_t bytes)
{
    must(e->cu.MemcpyHtoDAsync(to, data, bytes, e->stream), "writing");
    must(e->cu.StreamSynchronize(e->stream), "writing");
}

static void read_device(struct engine *e, void *data, CUdeviceptr from, size_t bytes)
{
    must(e->cu.MemcpyDtoHAsync(data, from, bytes, e->stream), "reading");
    must(e->cu.StreamSynchronize(e->stream), "reading");
}

static void write_memory(struct engine_memory *m, const void *data, size_t bytes)
{
    write_device(m->e, m->memory, data, bytes);
}

static void read_memory(struct engine_memory *m, void *data, size_t bytes)
{
    read_device(m->e, data, m->memory, bytes);
}

static void free_memory(struct engine_memory *m)
{
    must(m->e->cu.MemFree(m->memory), "a buffer");
    free(m);
}

/* ---- plans --------------------------------------------------------------------------------- */

static struct work *prepare(struct engine *e, const struct plan *p)
{
    struct work *w = calloc(1, sizeof *w);
    if (w == NULL) {
        bench_die("no memory");
    }
    w->e = e;
    w->plan = p;
    for (unsigned i = 0; i < p->buffer_count; i++) {
        must(e->cu.MemAlloc(&w->buffer[i], p->bytes[i]), "a buffer");
        if (p->content[i] != NULL) {
            w->in[i] = host_alloc(e, p->bytes[i]);
            memcpy(w->in[i], p->content[i], p->bytes[i]);
            write_device(e, w->buffer[i], w->in[i], p->bytes[i]);
        }
    }
    for (unsigned i = 0; i < PLAN_SLOTS; i++) {
        w->out[i] = host_alloc(e, p->bytes[p->result]);
        must(e->cu.EventCreate(&w->end[i], CU_EVENT_DISABLE_TIMING), "an event");
    }
    return w;
}

static void launch(struct work *w, const struct plan_step *s)
{
    void *args[PLAN_ARGS];
    for (unsigned i = 0; i < s->arg_count; i++) {
        const struct plan_arg *a = &s->arg[i];
        args[i] = a->access == PLAN_VALUE ? (void *)(uintptr_t)a->value : &w->buffer[a->buffer];
    }
    unsigned x = (unsigned)s->local[0];
    unsigned y = s->global[1] > 0 ? (unsigned)s->local[1] : 1;
    unsigned rows = s->global[1] > 0 ? (unsigned)s->global[1] / y : 1;
    must(w->e->cu.LaunchKernel(w->e->kernel[s->kernel], (unsigned)s->global[0] / x, rows, 1, x, y,
                               1, 0, w->e->stream, args, NULL),
         "a launch");
}

static void begin(struct work *w, unsigned slot)
{
    struct engine *e = w->e;
    for (unsigned i = 0; i < w->plan->step_count; i++) {
        const struct plan_step *s = &w->plan->step[i];
        size_t bytes = w->plan->bytes[s->buffer];
        if (s->op == PLAN_LAUNCH) {
            launch(w, s);
        } else if (s->op == PLAN_WRITE) {
            must(e->cu.MemcpyHtoDAsync(w->buffer[s->buffer], w->in[s->buffer], bytes, e->stream),
                 "a write");
        } else {
            must(e->cu.MemcpyDtoHAsync(w->out[slot], w->buffer[s->buffer], bytes, e->stream),
                 "a read");
        }
    }
    must(e->cu.EventRecord(w->end[slot], e->stream), "an event");
}

/* A thread may take a slot that another thread has begun, so this sets the context. */
static void take(struct work *w, unsigned slot)
{
    must(w->e->cu.CtxSetCurrent(w->e->context), "a context");
    must(w->e->cu.EventSynchronize(w->end[slot]), "waiting");
}

static float *fetch(struct work *w)
{
    size_t bytes = w->plan->bytes[w->plan->result];
    float *data = malloc(bytes);
    if (data == NULL) {
        bench_die("no memory");
    }
    read_device(w->e, data, w->buffer[w->plan->result], bytes);
    return data;
}

static void release(struct work *w)
{
    for (unsigned i = 0; i < w->plan->buffer_count; i++) {
        must(w->e->cu.MemFree(w->buffer[i]), "a buffer");
        host_free(w->e, w->in[i]);
    }
    for (unsigned i = 0; i < PLAN_SLOTS; i++) {
        must(w->e->cu.EventDestroy(w->end[i]), "an event");
        host_free(w->e, w->out[i]);
    }
    free(w);
}

const struct engine_kind engine_cuda = ENGINE_KIND("cuda");
