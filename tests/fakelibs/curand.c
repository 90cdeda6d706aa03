#include <stdbool.h>

#include "tests/fakelibs/fakelibs.h"

/* Numbers that nobody would call random, but that tell who made them: 1/2, 1/3, 1/4, … */
struct draw {
    CUstream stream;
    unsigned long long seed, offset;
    bool wide;
    double mean, deviation;
    void *x;
    size_t n;
};

static void fill(const void *work)
{
    const struct draw *d = work;
    for (size_t i = 0; i < d->n; i++) {
        double v = d->mean + d->deviation / (double)(i + 2 + d->seed % 16);
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
    *generator = calloc(1, sizeof **generator);
    return kind == 161 ? scripted("curand") : 103;
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
    return on_stream(d.stream, fill, &d, sizeof d);
}

EXPORT int curandGenerateUniform(struct draw *generator, float *x, size_t n);
int curandGenerateUniform(struct draw *generator, float *x, size_t n)
{
    return draw(generator, false, x, n, 0, 1);
}

EXPORT int curandGenerateUniformDouble(struct draw *generator, double *x, size_t n);
int curandGenerateUniformDouble(struct draw *generator, double *x, size_t n)
{
    return draw(generator, true, x, n, 0, 1);
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
