/* OpenCL in this process: one context, one in-order queue, like a program that has the device for
 * itself. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/common/echo.h"
#include "bench/common/gpud.h"
#include "bench/common/plan.h"

struct engine {
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel[PLAN_KERNELS];
};

struct work {
    struct engine *e;
    const struct plan *plan;
    cl_mem buffer[PLAN_BUFFERS];
    cl_event end[PLAN_SLOTS];
    void *out[PLAN_SLOTS]; /* destinations of reads */
};

struct engine_memory {
    struct engine *e;
    cl_mem memory;
};

static void must(cl_int rc, const char *what)
{
    if (rc != CL_SUCCESS) {
        bench_die("OpenCL: %s: %d", what, (int)rc);
    }
}

static bool first_device(cl_platform_id *ret_platform, cl_device_id *ret_device)
{
    cl_platform_id platforms[16];
    cl_uint count = 0;
    if (clGetPlatformIDs(16, platforms, &count) != CL_SUCCESS) {
        return false;
    }
    for (cl_uint i = 0; i < count && i < 16; i++) {
        if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, ret_device, NULL) == CL_SUCCESS) {
            *ret_platform = platforms[i];
            return true;
        }
    }
    return false;
}

static struct engine *open_engine(const char *address, const char **ret_why)
{
    cl_platform_id platform = NULL;
    cl_device_id device = NULL;
    cl_int rc = CL_SUCCESS;
    const char *source = plan_source;
    char cache[512];
    (void)address;
    (void)snprintf(cache, sizeof cache, "%s/in-process", gpud_cache());
    (void)mkdir(gpud_cache(), 0700); /* for PoCL's cache; on failure PoCL uses its own */
    (void)setenv("POCL_CACHE_DIR", cache, 0);
    if (!first_device(&platform, &device)) {
        *ret_why = "OpenCL has no device here";
        return NULL;
    }
    struct engine *e = calloc(1, sizeof *e);
    if (e == NULL) {
        bench_die("no memory");
    }
    e->context = clCreateContext(NULL, 1, &device, NULL, NULL, &rc);
    must(rc, "a context");
    e->queue = clCreateCommandQueue(e->context, device, 0, &rc);
    must(rc, "a queue");
    e->program = clCreateProgramWithSource(e->context, 1, &source, NULL, &rc);
    must(rc, "a program");
    must(clBuildProgram(e->program, 1, &device, "", NULL, NULL), "building");
    for (unsigned i = 0; i < PLAN_KERNELS; i++) {
        e->kernel[i] = clCreateKernel(e->program, plan_kernel_names[i], &rc);
        must(rc, plan_kernel_names[i]);
    }
    return e;
}

static void close_engine(struct engine *e)
{
    (void)clFinish(e->queue);
    for (unsigned i = 0; i < PLAN_KERNELS; i++) {
        (void)clReleaseKernel(e->kernel[i]);
    }
    (void)clReleaseProgram(e->program);
    (void)clReleaseCommandQueue(e->queue);
    (void)clReleaseContext(e->context);
    free(e);
}

/* ---- plans --------------------------------------------------------------------------------- */

static struct work *prepare(struct engine *e, const struct plan *p)
{
    struct work *w = calloc(1, sizeof *w);
    cl_int rc = CL_SUCCESS;
    if (w == NULL) {
        bench_die("no memory");
    }
    w->e = e;
    w->plan = p;
    for (unsigned i = 0; i < p->buffer_count; i++) {
        w->buffer[i] = clCreateBuffer(e->context, CL_MEM_READ_WRITE, p->bytes[i], NULL, &rc);
        must(rc, "a buffer");
        if (p->content[i] != NULL) {
            must(clEnqueueWriteBuffer(e->queue, w->buffer[i], CL_TRUE, 0, p->bytes[i],
                                      p->content[i], 0, NULL, NULL),
                 "writing");
        }
    }
    for (unsigned i = 0; i < PLAN_SLOTS; i++) {
        w->out[i] = malloc(p->bytes[p->result]);
        if (w->out[i] == NULL) {
            bench_die("no memory");
        }
    }
    return w;
}

static cl_event launch(struct work *w, const struct plan_step *s)
{
    cl_kernel k = w->e->kernel[s->kernel];
    cl_event end = NULL;
    for (unsigned i = 0; i < s->arg_count; i++) {
        const struct plan_arg *a = &s->arg[i];
        must(a->access == PLAN_VALUE ? clSetKernelArg(k, i, 4, a->value)
                                     : clSetKernelArg(k, i, sizeof(cl_mem), &w->buffer[a->buffer]),
             "an argument");
    }
    must(clEnqueueNDRangeKernel(w->e->queue, k, s->global[1] > 0 ? 2 : 1, NULL, s->global, s->local,
                                0, NULL, &end),
         "a launch");
    return end;
}

static cl_event move(struct work *w, const struct plan_step *s, unsigned slot)
{
    cl_event end = NULL;
    size_t bytes = w->plan->bytes[s->buffer];
    cl_mem m = w->buffer[s->buffer];
    must(s->op == PLAN_WRITE
             ? clEnqueueWriteBuffer(w->e->queue, m, CL_FALSE, 0, bytes, w->plan->content[s->buffer],
                                    0, NULL, &end)
             : clEnqueueReadBuffer(w->e->queue, m, CL_FALSE, 0, bytes, w->out[slot], 0, NULL, &end),
         "a copy");
    return end;
}

static void begin(struct work *w, unsigned slot)
{
    for (unsigned i = 0; i < w->plan->step_count; i++) {
        const struct plan_step *s = &w->plan->step[i];
        cl_event end = s->op == PLAN_LAUNCH ? launch(w, s) : move(w, s, slot);
        if (i + 1 == w->plan->step_count) {
            w->end[slot] = end;
        } else {
            (void)clReleaseEvent(end);
        }
    }
    must(clFlush(w->e->queue), "flushing");
}

static void take(struct work *w, unsigned slot)
{
    must(clWaitForEvents(1, &w->end[slot]), "waiting");
    (void)clReleaseEvent(w->end[slot]);
}

static float *fetch(struct work *w)
{
    size_t bytes = w->plan->bytes[w->plan->result];
    float *data = malloc(bytes);
    if (data == NULL) {
        bench_die("no memory");
    }
    must(clEnqueueReadBuffer(w->e->queue, w->buffer[w->plan->result], CL_TRUE, 0, bytes, data, 0,
                             NULL, NULL),
         "reading");
    return data;
}

static void release(struct work *w)
{
    for (unsigned i = 0; i < w->plan->buffer_count; i++) {
        (void)clReleaseMemObject(w->buffer[i]);
    }
    for (unsigned i = 0; i < PLAN_SLOTS; i++) {
        free(w->out[i]);
    }
    free(w);
}

/* ---- memory -------------------------------------------------------------------------------- */

static void *host_alloc(struct engine *e, size_t bytes)
{
    void *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    (void)e; /* no memory is faster than other memory on this processor */
    if (memory == NULL) {
        bench_die("no memory for %zu bytes", bytes);
    }
    return memory;
}

static void host_free(struct engine *e, void *memory)
{
    (void)e;
    free(memory);
}

static struct engine_memory *alloc(struct engine *e, size_t bytes)
{
    struct engine_memory *m = calloc(1, sizeof *m);
    cl_int rc = CL_SUCCESS;
    if (m == NULL) {
        bench_die("no memory");
    }
    m->e = e;
    m->memory = clCreateBuffer(e->context, CL_MEM_READ_WRITE, bytes, NULL, &rc);
    must(rc, "a buffer");
    return m;
}

static void write_memory(struct engine_memory *m, const void *data, size_t bytes)
{
    must(clEnqueueWriteBuffer(m->e->queue, m->memory, CL_TRUE, 0, bytes, data, 0, NULL, NULL),
         "writing");
}

static void read_memory(struct engine_memory *m, void *data, size_t bytes)
{
    must(clEnqueueReadBuffer(m->e->queue, m->memory, CL_TRUE, 0, bytes, data, 0, NULL, NULL),
         "reading");
}

static void free_memory(struct engine_memory *m)
{
    (void)clReleaseMemObject(m->memory);
    free(m);
}

const struct engine_kind engine_opencl = ENGINE_KIND("opencl");
