/*
 * A piece of work as data, and engines that carry it out: gpud, and the vendor's API in this
 * process. Both get the same kernels' source, the same buffers and the same steps.
 *
 * Thread: one. Ends the process if something fails; engine_kind.open alone may find nothing.
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
    unsigned buffer;   /* unless it is a value */
    const void *value; /* 4 bytes, lives as long as the plan */
};

enum plan_op { PLAN_WRITE, PLAN_LAUNCH, PLAN_READ };
struct plan_step {
    enum plan_op op;
    unsigned buffer; /* of writes and reads: all of it */
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
    const float *content[PLAN_BUFFERS]; /* at the start, and what a WRITE writes; NULL: nothing */
    unsigned step_count;
    struct plan_step step[PLAN_STEPS];
    unsigned result; /* the buffer that is looked at in the end */
    unsigned sealed; /* bits of buffers that never change after their content was written */
};

/* All kernels, in OpenCL C. */
extern const char plan_source[];
/* All kernels, as nvcc made them of bench/kernels.cu: the file that BENCH_KERNELS names, else
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
    /* gpud: its URL. Others: their first device; NULL: there is none, *ret_why says so. */
    struct engine *(*open)(const char *address, const char **ret_why);
    void (*close)(struct engine *e);

    struct work *(*prepare)(struct engine *e, const struct plan *p);
    void (*begin)(struct work *w, unsigned slot);
    void (*take)(struct work *w, unsigned slot); /* slots in the order they were begun */
    /* The content of the buffer `result`, freed by the caller. No slot may be in use. */
    float *(*fetch)(struct work *w);
    void (*release)(struct work *w);

    /* Memory of this process that copies go fastest from and to. */
    void *(*host_alloc)(struct engine *e, size_t bytes);
    void (*host_free)(struct engine *e, void *memory);
    /* Plain memory of the device and copies of it, blocking. */
    struct engine_memory *(*alloc)(struct engine *e, size_t bytes);
    void (*write)(struct engine_memory *m, const void *data, size_t bytes);
    void (*read)(struct engine_memory *m, void *data, size_t bytes);
    void (*free)(struct engine_memory *m);
};

/* What each of them has, by the same names in its file. */
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
/* Opens it, too. NULL: there is none, *ret_why says so. */
struct engine *engine_direct_open(const char *backend, const struct engine_kind **ret_kind,
                                  const char **ret_why);

#endif
