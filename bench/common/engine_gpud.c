/* gpud as an engine: a plan is a program that is sealed once; each run is a job of it. */
#include <gpud/gpud.h>
#include <stdlib.h>
#include <string.h>

#include "bench/common/echo.h"
#include "bench/common/gpud.h"
#include "bench/common/plan.h"

struct engine {
    gpud_client *client;
    gpud_module module;
    gpud_kernel kernel[PLAN_KERNELS];
};

struct work {
    struct engine *e;
    const struct plan *plan;
    gpud_buffer buffer[PLAN_BUFFERS];
    gpud_program *program;
    gpud_arg given[PLAN_STEPS]; /* parameters that are written */
    uint32_t given_count;
    void *shared[PLAN_BUFFERS]; /* values to write, in shared memory; owned */
    void *read[PLAN_BUFFERS];   /* destinations of reads; owned */
    gpud_job *job[PLAN_SLOTS];
};

struct engine_memory {
    struct engine *e;
    gpud_buffer buffer;
};

static void must(int rc, const char *what)
{
    if (rc < 0) {
        bench_die("gpud: %s: %s", what, gpud_last_error()->text);
    }
}

/* Loads the fatbin if the back end is CUDA, as engine_cuda does; otherwise the OpenCL C source. */
static void load_kernels(struct engine *e)
{
    const char *backend = getenv(GPUD_BACKEND);
    gpud_module_options o = {.size = sizeof o, .name = "bench", .file = "bench.cl"};
    if (backend != NULL && strcmp(backend, "cuda") == 0) {
        size_t size = 0;
        void *code = plan_device_code(&size);
        o.file = "bench_kernels.fatbin";
        must(gpud_module_load(e->client, GPUD_LANG_CUBIN, code, size, &o, &e->module), "kernels");
        free(code);
        return;
    }
    must(gpud_module_load(e->client, GPUD_LANG_OPENCL, plan_source, strlen(plan_source), &o,
                          &e->module),
         "kernels");
}

static struct engine *open_engine(const char *address, const char **ret_why)
{
    struct engine *e = calloc(1, sizeof *e);
    (void)ret_why;
    if (e == NULL) {
        bench_die("no memory");
    }
    must(gpud_open(address, NULL, &e->client), "opening");
    load_kernels(e);
    for (unsigned i = 0; i < PLAN_KERNELS; i++) {
        must(gpud_module_kernel(e->client, e->module, plan_kernel_names[i], &e->kernel[i]),
             plan_kernel_names[i]);
    }
    return e;
}

static void close_engine(struct engine *e)
{
    gpud_close(e->client);
    free(e);
}

/* ---- plans --------------------------------------------------------------------------------- */

static gpud_shape shape_of(size_t bytes)
{
    return gpud_shape_1d(GPUD_F32, bytes / sizeof(float));
}

static void add_launch(struct work *w, const struct plan_step *s)
{
    static const int access[] = {0, GPUD_IN, GPUD_OUT, GPUD_INOUT};
    gpud_arg args[PLAN_ARGS];
    const gpud_grid grid = {.size = sizeof grid,
                            .global = {s->global[0], s->global[1], 0},
                            .local = {s->local[0], s->local[1], 0}};
    for (unsigned i = 0; i < s->arg_count; i++) {
        const struct plan_arg *a = &s->arg[i];
        args[i] = a->access == PLAN_VALUE
                      ? gpud_bytes(a->value, 4)
                      : gpud_arg_with(gpud_in(w->buffer[a->buffer]), access[a->access]);
    }
    must(gpud_program_launch(w->program, w->e->kernel[s->kernel], args, s->arg_count, &grid),
         "a launch");
}

static void add_write(struct work *w, const struct plan_step *s)
{
    size_t bytes = w->plan->bytes[s->buffer];
    gpud_arg data = gpud_program_param(w->program, "data", GPUD_PARAM_DATA, shape_of(bytes));
    must(gpud_program_write(w->program, gpud_out(w->buffer[s->buffer]), data), "a write");
    void *memory = NULL;
    must(gpud_host_alloc(w->e->client, bytes, &memory), "shared memory");
    memcpy(memory, w->plan->content[s->buffer], bytes);
    w->shared[s->buffer] = memory;
    w->given[w->given_count++] = gpud_host_in(memory, bytes / sizeof(float), GPUD_F32);
}

/* Reads go to shared memory, the same for all runs: jobs of the same buffers run in order. */
static void add_read(struct work *w, const struct plan_step *s)
{
    size_t bytes = w->plan->bytes[s->buffer];
    void *memory = NULL;
    must(gpud_host_alloc(w->e->client, bytes, &memory), "shared memory");
    w->read[s->buffer] = memory;
    must(gpud_program_read_to(w->program, gpud_host_out(memory, bytes / sizeof(float), GPUD_F32),
                              gpud_in(w->buffer[s->buffer])),
         "a read");
}

static void add_step(struct work *w, const struct plan_step *s)
{
    if (s->op == PLAN_LAUNCH) {
        add_launch(w, s);
    } else if (s->op == PLAN_WRITE) {
        add_write(w, s);
    } else {
        add_read(w, s);
    }
}

static struct work *prepare(struct engine *e, const struct plan *p)
{
    struct work *w = calloc(1, sizeof *w);
    if (w == NULL) {
        bench_die("no memory");
    }
    w->e = e;
    w->plan = p;
    for (unsigned i = 0; i < p->buffer_count; i++) {
        gpud_shape shape = shape_of(p->bytes[i]);
        must(gpud_buffer_create(e->client, shape, GPUD_BUFFER_ZERO, NULL, &w->buffer[i]),
             "a buffer");
        if (p->content[i] != NULL) {
            must(gpud_write(e->client, w->buffer[i], GPUD_F32, 0, GPUD_REST, p->content[i], NULL),
                 "writing");
        }
        if ((p->sealed >> i & 1) != 0) {
            must(gpud_buffer_seal(e->client, w->buffer[i]), "sealing");
        }
    }
    must(gpud_program_create(e->client, p->name, &w->program), "a program");
    for (unsigned i = 0; i < p->step_count; i++) {
        add_step(w, &p->step[i]);
    }
    must(gpud_program_seal(w->program), p->name);
    return w;
}

static void begin(struct work *w, unsigned slot)
{
    static const gpud_submit_options held = {.size = sizeof held, .flags = GPUD_SUBMIT_HELD};
    must(gpud_submit(w->e->client, w->program, w->given, w->given_count, &held, &w->job[slot]),
         "a job");
}

static void take(struct work *w, unsigned slot)
{
    must(gpud_wait(w->job[slot], GPUD_FOREVER), w->plan->name);
    gpud_job_free(w->job[slot]);
}

static float *fetch(struct work *w)
{
    float *data = malloc(w->plan->bytes[w->plan->result]);
    if (data == NULL) {
        bench_die("no memory");
    }
    must(gpud_read(w->e->client, w->buffer[w->plan->result], GPUD_F32, 0, GPUD_REST, data, NULL),
         "reading");
    return data;
}

static void release(struct work *w)
{
    gpud_program_free(w->program);
    for (unsigned i = 0; i < w->plan->buffer_count; i++) {
        must(gpud_buffer_free(w->e->client, w->buffer[i]), "a buffer");
    }
    must(gpud_flush(w->e->client, GPUD_FOREVER), "flushing");
    for (unsigned i = 0; i < PLAN_BUFFERS; i++) {
        must(gpud_host_free(w->e->client, w->shared[i]), "shared memory");
        must(gpud_host_free(w->e->client, w->read[i]), "shared memory");
    }
    free(w);
}

/* ---- memory -------------------------------------------------------------------------------- */

static void *host_alloc(struct engine *e, size_t bytes)
{
    void *memory = NULL;
    must(gpud_host_alloc(e->client, bytes, &memory), "shared memory");
    return memory;
}

static void host_free(struct engine *e, void *memory)
{
    must(gpud_host_free(e->client, memory), "shared memory");
}

static struct engine_memory *alloc(struct engine *e, size_t bytes)
{
    struct engine_memory *m = calloc(1, sizeof *m);
    if (m == NULL) {
        bench_die("no memory");
    }
    m->e = e;
    must(gpud_buffer_create(e->client, gpud_shape_1d(GPUD_U8, bytes), 0, NULL, &m->buffer),
         "a buffer");
    return m;
}

static void write_memory(struct engine_memory *m, const void *data, size_t bytes)
{
    must(gpud_write(m->e->client, m->buffer, GPUD_U8, 0, bytes, data, NULL), "writing");
}

static void read_memory(struct engine_memory *m, void *data, size_t bytes)
{
    must(gpud_read(m->e->client, m->buffer, GPUD_U8, 0, bytes, data, NULL), "reading");
}

static void free_memory(struct engine_memory *m)
{
    must(gpud_buffer_free(m->e->client, m->buffer), "a buffer");
    free(m);
}

const struct engine_kind engine_gpud = ENGINE_KIND("gpud");
