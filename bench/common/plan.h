/*
 * Plans (work as data) and the engines that run them: gpud, and the vendor's API in this process.
 * Both get the same kernels, buffers and steps.
 *
 * Thread: one. Ends the process if something fails; only engine_kind.open may return NULL.
 */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_BUFFERS 4u
#define PLAN_STEPS   8u
#define PLAN_ARGS    5u
#define PLAN_SLOTS   16u /* runs of one plan at once */

enum plan_kernel {
    PLAN_NOTHING, /* () */
    PLAN_SAXPY,   /* (n, a, in x, inout y) */
    PLAN_SUM,     /* (n, in x, out part): one sum for each PLAN_SUM_ITEMS elements */
    PLAN_GEMM,    /* (n, in a, in b, out c): square, n a multiple of 16 */
    PLAN_SCALE,   /* (n, a, in x, out y) */
    PLAN_BLUR,    /* (n, in x, out y): mean of three neighbours */
    PLAN_ROOT,    /* (n, in x, out y) */
    PLAN_WEIGH,   /* (n, in x, in w, out y): y = x * w */
    PLAN_KERNELS
};

#define PLAN_SUM_ITEMS 4096u

enum plan_access { PLAN_VALUE, PLAN_IN, PLAN_OUT, PLAN_INOUT };
struct plan_arg {
    enum plan_access access;
    unsigned buffer;   /* not for values */
    const void *value; /* 4 bytes, lives as long as the plan */
};

enum plan_op { PLAN_WRITE, PLAN_LAUNCH, PLAN_READ };
struct plan_step {
    enum plan_op op;
    unsigned buffer; /* of writes and reads, which move the whole buffer */
    enum plan_kernel kernel;
    unsigned arg_count;
    struct plan_arg arg[PLAN_ARGS];
    size_t global[2]; /* 0: one dimension */
    size_t local[2];
};

struct plan {
    const char *name;
    unsigned buffer_count;
    size_t bytes[PLAN_BUFFERS];
    const float *content[PLAN_BUFFERS]; /* initial, and the source of WRITE; NULL: none */
    unsigned step_count;
    struct plan_step step[PLAN_STEPS];
    unsigned result; /* the buffer that is checked at the end */
    unsigned sealed; /* a bit for each buffer that never changes after its content was written */
};

/* All kernels, in OpenCL C. */
extern const char plan_source[];
/* All kernels, compiled by nvcc from bench/kernels.cu: the file that BENCH_KERNELS names, else
 * bench_kernels.fatbin beside the program. The caller frees. */
void *plan_device_code(size_t *ret_size);
extern const char *const plan_kernel_names[PLAN_KERNELS];

void plan_launch(struct plan *p, enum plan_kernel k, size_t items, size_t group);
void plan_value(struct plan *p, const void *value); /* arguments of the last launch */
void plan_buffer(struct plan *p, enum plan_access access, unsigned buffer);
void plan_move(struct plan *p, enum plan_op op, unsigned buffer);

struct engine;
struct work; /* a plan on an engine */
struct engine_memory;

struct engine_kind {
    const char *name;
    /* gpud: connects to the URL. Others: open their first device; NULL: none, see *ret_why. */
    struct engine *(*open)(const char *address, const char **ret_why);
    void (*close)(struct engine *e);

    struct work *(*prepare)(struct engine *e, const struct plan *p);
    void (*begin)(struct work *w, unsigned slot);
    void (*take)(struct work *w, unsigned slot); /* slots in the order they were begun */
    /* The content of the buffer `result`, freed by the caller. No slot may be in use. */
    float *(*fetch)(struct work *w);
    void (*release)(struct work *w);

    /* Host memory with the fastest copies from and to the device. */
    void *(*host_alloc)(struct engine *e, size_t bytes);
    void (*host_free)(struct engine *e, void *memory);
    /* Plain memory of the device and copies of it, blocking. */
    struct engine_memory *(*alloc)(struct engine *e, size_t bytes);
    void (*write)(struct engine_memory *m, const void *data, size_t bytes);
    void (*read)(struct engine_memory *m, void *data, size_t bytes);
    void (*free)(struct engine_memory *m);
};

/* The functions of an engine, which have the same names in each engine's file. */
#define ENGINE_KIND(text)                                                                          \
    {                                                                                              \
        .name = (text), .open = open_engine, .close = close_engine, .prepare = prepare,            \
        .begin = begin, .take = take, .fetch = fetch, .release = release,                          \
        .host_alloc = host_alloc, .host_free = host_free, .alloc = alloc, .write = write_memory,   \
        .read = read_memory, .free = free_memory                                                   \
    }

extern const struct engine_kind engine_gpud;
extern const struct engine_kind engine_opencl; /* only if BENCH_OPENCL */
extern const struct engine_kind engine_cuda;   /* only if BENCH_CUDA */

/* The API that gpud's back end uses, in this process; NULL: not built in. */
const struct engine_kind *engine_direct(const char *backend);
/* Finds and opens it. NULL: there is none, see *ret_why. */
struct engine *engine_direct_open(const char *backend, const struct engine_kind **ret_kind,
                                  const char **ret_why);

#endif
