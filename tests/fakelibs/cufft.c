#include <complex.h>
#include <math.h>
#include <stdbool.h>

#include "tests/fakelibs/fakelibs.h"

#define PLANS 512
#define Z2Z   0x69

struct transform {
    bool used, wide;
    int rank, direction;
    long long n[2], batch;
    CUstream stream;
    size_t bytes;
    bool told; /* of its work area */
    const void *in;
    void *out;
};

static struct transform plans[PLANS];

static double complex number(const struct transform *t, const void *at, long long i)
{
    if (t->wide) {
        return ((const double *)at)[2 * i] + I * ((const double *)at)[2 * i + 1];
    }
    return (double)((const float *)at)[2 * i] + I * (double)((const float *)at)[2 * i + 1];
}

static void put(const struct transform *t, long long i, double complex v)
{
    if (t->wide) {
        ((double *)t->out)[2 * i] = creal(v);
        ((double *)t->out)[2 * i + 1] = cimag(v);
    } else {
        ((float *)t->out)[2 * i] = (float)creal(v);
        ((float *)t->out)[2 * i + 1] = (float)cimag(v);
    }
}

/* By the definition: slow, and like nothing that the kernels do. */
static double complex sum_of(const struct transform *t, long long first, long long fy, long long fx)
{
    long long h = t->rank == 2 ? t->n[0] : 1;
    long long w = t->rank == 2 ? t->n[1] : t->n[0];
    double complex sum = 0;
    for (long long y = 0; y < h; y++) {
        for (long long x = 0; x < w; x++) {
            double turns = (double)(fy * y % h) / (double)h + (double)(fx * x % w) / (double)w;
            sum += number(t, t->in, first + y * w + x) * cexp(t->direction * 2 * M_PI * I * turns);
        }
    }
    return sum;
}

static void execute(const void *work)
{
    const struct transform *t = work;
    long long h = t->rank == 2 ? t->n[0] : 1;
    long long w = t->rank == 2 ? t->n[1] : t->n[0];
    for (long long i = 0; i < t->batch * h * w; i++) {
        long long first = i / (h * w) * (h * w);
        put(t, i, sum_of(t, first, (i - first) / w, (i - first) % w));
    }
}

EXPORT int cufftCreate(int *plan);
int cufftCreate(int *plan)
{
    int code = scripted("cufft");
    for (int i = 0; code == 0 && i < PLANS; i++) {
        if (!plans[i].used) {
            plans[i] = (struct transform){.used = true};
            *plan = i;
            return 0;
        }
    }
    return code != 0 ? code : 2;
}

EXPORT int cufftDestroy(int plan);
int cufftDestroy(int plan)
{
    (void)cuCtxSynchronize(); /* it frees memory, for which the driver waits so */
    plans[plan].used = false;
    return 0;
}

EXPORT int cufftSetAutoAllocation(int plan, int automatic);
int cufftSetAutoAllocation(int plan, int automatic)
{
    return plans[plan].used && automatic == 0 ? 0 : 1;
}

EXPORT int cufftMakePlanMany64(int plan, int rank, long long *n, long long *in_embed,
                               long long in_stride, long long in_distance, long long *out_embed,
                               long long out_stride, long long out_distance, int type,
                               long long batch, size_t *bytes);
int cufftMakePlanMany64(int plan, int rank, long long *n, long long *in_embed, long long in_stride,
                        long long in_distance, long long *out_embed, long long out_stride,
                        long long out_distance, int type, long long batch, size_t *bytes)
{
    struct transform *t = &plans[plan];
    long long count = rank == 2 ? n[0] * n[1] : n[0];
    t->rank = rank;
    t->n[0] = n[0];
    t->n[1] = rank == 2 ? n[1] : 1;
    t->batch = batch;
    t->wide = type == Z2Z;
    t->bytes = rank == 1 && batch == 1 ? 0 : 4096; /* some work without an area */
    *bytes = t->bytes;
    bool plain = !in_embed && !out_embed && in_stride == 1 && out_stride == 1;
    return plain && in_distance == count && out_distance == count ? 0 : 4;
}

EXPORT int cufftSetStream(int plan, CUstream stream);
int cufftSetStream(int plan, CUstream stream)
{
    plans[plan].stream = stream;
    return 0;
}

EXPORT int cufftSetWorkArea(int plan, void *memory);
int cufftSetWorkArea(int plan, void *memory)
{
    plans[plan].told = memory || plans[plan].bytes == 0;
    return plans[plan].told ? 0 : 4;
}

static int exec(int plan, void *in, void *out, int direction)
{
    struct transform t = plans[plan];
    t.in = in;
    t.out = out;
    t.direction = direction;
    return t.told ? on_stream(t.stream, execute, &t, sizeof t) : 4;
}

EXPORT int cufftExecC2C(int plan, void *in, void *out, int direction);
int cufftExecC2C(int plan, void *in, void *out, int direction)
{
    return plans[plan].wide ? 3 : exec(plan, in, out, direction);
}

EXPORT int cufftExecZ2Z(int plan, void *in, void *out, int direction);
int cufftExecZ2Z(int plan, void *in, void *out, int direction)
{
    return plans[plan].wide ? exec(plan, in, out, direction) : 3;
}
