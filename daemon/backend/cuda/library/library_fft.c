/* Fourier transforms by cuFFT. A plan is made once for each stream, shape and type, and kept;
 * the least recently used plan makes room. A plan works in memory of the pool. It also has
 * memory of its own, and to free that the driver waits for all work of the device. A retired
 * plan is therefore destroyed when nothing is in flight. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/shape.h"
#include "daemon/backend/cuda/library/library_call.h"

#define PLANS   8
#define C2C     0x29
#define Z2Z     0x69
#define FORWARD (-1)
#define INVERSE 1

#define ENTRIES(X)                                                                                 \
    X(Create, (int *plan))                                                                         \
    X(Destroy, (int plan))                                                                         \
    X(SetAutoAllocation, (int plan, int automatic))                                                \
    X(MakePlanMany64, (int plan, int rank, long long *n, long long *in_embed, long long in_stride, \
                       long long in_distance, long long *out_embed, long long out_stride,          \
                       long long out_distance, int type, long long batch, size_t *bytes))          \
    X(SetStream, (int plan, CUstream stream))                                                      \
    X(SetWorkArea, (int plan, void *memory))                                                       \
    X(ExecC2C, (int plan, void *in, void *out, int direction))                                     \
    X(ExecZ2Z, (int plan, void *in, void *out, int direction))

struct fft {
#define X(name, parameters) int(*name) parameters;
    ENTRIES(X)
#undef X
};

static const struct toolkit_entry entries[] = {
#define X(name, parameters) {"cufft" #name, offsetof(struct fft, name)},
    ENTRIES(X)
#undef X
};
static const char *const files[] = {"libcufft.so.12", "libcufft.so.11", NULL};
static struct fft fft;

struct fft_shape {
    int rank, type;
    long long n[2], batch;
};

struct plan {
    struct fft_shape shape;
    int plan;
    size_t bytes;
    uint64_t used; /* time of the last use; 0: no plan */
};

struct cuda_fft {
    struct plan plan[PLANS];
    uint64_t clock;
};

/* Reads the sizes, which follow x and y. Returns false if there are no elements. */
static bool shape_read(const struct backend_call *c, struct fft_shape *ret_shape)
{
    struct fft_shape f = {.rank = 1, .type = c->dtype == DTYPE_F64 ? Z2Z : C2C, .batch = 1};
    f.n[0] = (long long)cuda_call_u64(c, 2);
    if (strstr(c->operation, "_batched")) {
        f.batch = f.n[0];
        f.n[0] = (long long)cuda_call_u64(c, 3);
    } else if (strstr(c->operation, "_2d")) {
        f.rank = 2;
        f.n[1] = (long long)cuda_call_u64(c, 3);
    }
    *ret_shape = f;
    return f.batch > 0 && f.n[0] > 0 && (f.rank == 1 || f.n[1] > 0);
}

/* The plan with that shape, or the entry that was not used for longest. */
static struct plan *place_of(struct cuda_fft *f, const struct fft_shape *shape)
{
    struct plan *oldest = &f->plan[0];
    for (unsigned i = 0; i < PLANS; i++) {
        struct plan *p = &f->plan[i];
        if (p->used > 0 && memcmp(&p->shape, shape, sizeof *shape) == 0) {
            return p;
        }
        oldest = p->used < oldest->used ? p : oldest;
    }
    return oldest;
}

static void tidy(struct backend_device *d)
{
    while (d->plan_count > 0) {
        fft.Destroy(d->plan[--d->plan_count]);
    }
}

/* The list has room: plan_obtain checked that before the plan was made. */
static void retire(struct backend_device *d, const struct plan *p)
{
    d->plan[d->plan_count++] = p->plan;
}

/* A plan that cannot be completed is retired. */
static int plan_make(struct backend_device *d, CUstream stream, const struct fft_shape *shape,
                     struct plan *p, struct err *e)
{
    struct fft_shape f = *shape;
    long long distance = f.rank == 2 ? f.n[0] * f.n[1] : f.n[0];
    int rc = cuda_library_check(&cuda_fft, fft.Create(&p->plan), "cufftCreate", e);
    if (rc != 0) {
        return rc;
    }
    int status = fft.SetAutoAllocation(p->plan, 0);
    status = status == 0 ? fft.SetStream(p->plan, stream) : status;
    status = status == 0 ? fft.MakePlanMany64(p->plan, f.rank, f.n, NULL, 1, distance, NULL, 1,
                                              distance, f.type, f.batch, &p->bytes)
                         : status;
    rc = cuda_library_check(&cuda_fft, status, "cufftMakePlanMany64", e);
    p->shape = *shape;
    if (rc != 0) {
        retire(d, p);
    }
    return rc;
}

static int plan_obtain(struct backend_stream *s, const struct backend_call *c,
                       struct plan **ret_plan, struct err *e)
{
    struct fft_shape shape;
    if (!shape_read(c, &shape)) {
        return err_set(e, ERR_UNSUPPORTED, "nothing to do");
    }
    s->fft = s->fft ? s->fft : calloc(1, sizeof *s->fft);
    if (!s->fft) {
        return err_set(e, ERR_UNSUPPORTED, "no memory for plans");
    }
    struct plan *p = place_of(s->fft, &shape);
    if (p->used == 0 || memcmp(&p->shape, &shape, sizeof shape) != 0) {
        struct plan fresh = {.used = 0};
        if (s->device->plan_count == CUDA_PLANS_MAX) { /* the device was not idle for a long time */
            return err_set(e, ERR_UNSUPPORTED, "%u plans are still in use", CUDA_PLANS_MAX);
        }
        int rc = plan_make(s->device, s->stream, &shape, &fresh, e);
        if (rc != 0) {
            return rc;
        }
        if (p->used > 0) {
            retire(s->device, p);
        }
        *p = fresh;
    }
    p->used = ++s->fft->clock;
    *ret_plan = p;
    return 0;
}

static int workspace(struct backend_stream *s, const struct backend_call *c, uint64_t *ret_bytes,
                     struct err *e)
{
    struct plan *p = NULL;
    int rc = plan_obtain(s, c, &p, e);
    if (rc == 0) {
        *ret_bytes = p->bytes;
    }
    return rc;
}

static int run(struct backend_stream *s, const struct backend_call *c, CUdeviceptr workspace_at,
               uint64_t bytes, struct err *e)
{
    struct plan *p = NULL;
    int direction = c->operation[0] == 'i' ? INVERSE : FORWARD;
    void *x = cuda_call_address(c, 0);
    void *y = cuda_call_address(c, 1);
    int rc = plan_obtain(s, c, &p, e);
    if (rc != 0) {
        return rc;
    }
    (void)bytes; /* set even if it is NULL, because the plan has no area of its own */
    int status = fft.SetWorkArea(p->plan, (void *)(uintptr_t)workspace_at);
    if (status == 0) {
        status = c->dtype == DTYPE_F64 ? fft.ExecZ2Z(p->plan, x, y, direction)
                                       : fft.ExecC2C(p->plan, x, y, direction);
    }
    return cuda_library_check(&cuda_fft, status, c->operation, e);
}

static void finish(struct backend_stream *s)
{
    for (unsigned i = 0; s->fft && i < PLANS; i++) {
        if (s->fft->plan[i].used > 0) {
            fft.Destroy(s->fft->plan[i].plan);
        }
    }
    free(s->fft);
}

/* The first plan makes the library load what all plans need. */
static int prepare(struct backend_device *d, struct err *e)
{
    const struct fft_shape shape = {.rank = 1, .type = C2C, .n = {256}, .batch = 1};
    struct plan p = {.used = 0};
    int rc = plan_make(d, d->prepare_stream, &shape, &p, e);
    if (rc == 0) {
        retire(d, &p); /* no other plan exists before the library is ready */
    } else {
        tidy(d); /* empties the list for the next try */
    }
    return rc;
}

static const char *const kernels[] = {"fft_pass_f32", NULL};
static const char *const operations[] = {"fft",    "ifft",    "fft_batched", "ifft_batched",
                                         "fft_2d", "ifft_2d", NULL};
struct cuda_library cuda_fft = {.name = "cufft",
                                .files = files,
                                .advice = "install cuFFT (Debian: libcufft11)",
                                .entries = entries,
                                .entry_count = sizeof entries / sizeof entries[0],
                                .table = &fft,
                                .kernels = kernels,
                                .operations = operations,
                                .workspace = workspace,
                                .run = run,
                                .prepare = prepare,
                                .finish = finish,
                                .tidy = tidy,
                                .close = tidy};
