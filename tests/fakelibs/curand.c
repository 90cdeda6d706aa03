#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/fakelibs/fakelibs.h"

struct draw {
    CUstream stream;
    unsigned long long seed, offset;
    bool wide;
    double mean, deviation;
    void *x;
    size_t n;
};

static uint64_t mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* 0 < u < 1 */
static double uniform(const struct draw *d, uint64_t i)
{
    return ((double)(mix(mix(d->seed) ^ (d->offset + i)) >> 11) + 0.5) * 0x1p-53;
}

/* Others than the portable kernels', by the same transform. */
static void fill(const void *work)
{
    const struct draw *d = work;
    for (size_t i = 0; i < d->n; i++) {
        double length = sqrt(-2 * log(uniform(d, i / 2 * 2)));
        double angle = 2 * M_PI * uniform(d, i / 2 * 2 + 1);
        double v = d->mean + d->deviation * length * (i % 2 == 0 ? cos(angle) : sin(angle));
        if (d->wide) {
            ((double *)d->x)[i] = v;
        } else {
            ((float *)d->x)[i] = (float)v;
        }
    }
}

EXPORT int curandCreateGenerator(struct draw **generator, int kind);
int curandCreateGenerator(struct draw **generator, int kind)
{
    int code = kind == 161 ? scripted("curand") : 103;
    if (code == 0) {
        *generator = calloc(1, sizeof **generator);
    }
    return code;
}

EXPORT int curandDestroyGenerator(struct draw *generator);
int curandDestroyGenerator(struct draw *generator)
{
    free(generator);
    return 0;
}

EXPORT int curandSetStream(struct draw *generator, CUstream stream);
int curandSetStream(struct draw *generator, CUstream stream)
{
    generator->stream = stream;
    return 0;
}

EXPORT int curandSetPseudoRandomGeneratorSeed(struct draw *generator, unsigned long long seed);
int curandSetPseudoRandomGeneratorSeed(struct draw *generator, unsigned long long seed)
{
    generator->seed = seed;
    return 0;
}

EXPORT int curandSetGeneratorOffset(struct draw *generator, unsigned long long offset);
int curandSetGeneratorOffset(struct draw *generator, unsigned long long offset)
{
    generator->offset = offset;
    return 0;
}

static int draw(const struct draw *generator, bool wide, void *x, size_t n, double mean,
                double deviation)
{
    struct draw d = *generator;
    d.wide = wide;
    d.x = x;
    d.n = n;
    d.mean = mean;
    d.deviation = deviation;
    if ((uintptr_t)x % 16 != 0) { /* it would store several at once */
        return 999;
    }
    return on_stream(d.stream, fill, &d, sizeof d);
}

EXPORT int curandGenerateNormal(struct draw *generator, float *x, size_t n, float mean,
                                float deviation);
int curandGenerateNormal(struct draw *generator, float *x, size_t n, float mean, float deviation)
{
    return n % 2 == 0 ? draw(generator, false, x, n, (double)mean, (double)deviation) : 105;
}

EXPORT int curandGenerateNormalDouble(struct draw *generator, double *x, size_t n, double mean,
                                      double deviation);
int curandGenerateNormalDouble(struct draw *generator, double *x, size_t n, double mean,
                               double deviation)
{
    return n % 2 == 0 ? draw(generator, true, x, n, mean, deviation) : 105;
}
