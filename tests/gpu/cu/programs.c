#include "tests/gpu/cu/programs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- making a launch ------------------------------------------------------------------------- */

static uint32_t random_next(struct program_run *r)
{
    r->random = r->random * 1664525u + 1013904223u;
    return r->random >> 8;
}

/* A buffer of zeros, and an argument for it. */
static void *zeros(struct program_run *r, int dtype, unsigned count)
{
    unsigned i = r->buffers++;
    r->dtype[i] = dtype;
    r->bytes[i] = count * gpud_dtype_size(dtype);
    if (r->bytes[i] > PROGRAM_BYTES) {
        abort();
    }
    r->arg[r->args++] = (struct program_arg){.is_buffer = true, .buffer = i};
    return r->data[i];
}

/* Between -1 and 1. */
static float *floats(struct program_run *r, unsigned count)
{
    float *x = zeros(r, GPUD_F32, count);
    for (unsigned i = 0; i < count; i++) {
        x[i] = (float)(random_next(r) % 2048u) / 1024.0f - 1.0f;
    }
    return x;
}

static double *doubles(struct program_run *r, unsigned count)
{
    double *x = zeros(r, GPUD_F64, count);
    for (unsigned i = 0; i < count; i++) {
        x[i] = (double)(random_next(r) % 2048u) / 1024.0 - 1.0;
    }
    return x;
}

static int32_t *integers(struct program_run *r, unsigned count, uint32_t below)
{
    int32_t *x = zeros(r, GPUD_I32, count);
    for (unsigned i = 0; i < count; i++) {
        x[i] = (int32_t)(random_next(r) % below);
    }
    return x;
}

static void value(struct program_run *r, gpud_arg arg)
{
    r->arg[r->args++] = (struct program_arg){.value = arg};
}

static void grid(struct program_run *r, unsigned x, unsigned y, unsigned bx, unsigned by)
{
    r->grid = (gpud_grid){.size = sizeof r->grid,
                          .global = {(x + bx - 1) / bx * bx, (y + by - 1) / by * by, 1},
                          .local = {bx, by, 1}};
}

/* The buffer that was made last; the caller fills in the expected contents. */
static double *output(struct program_run *r, enum program_type type, unsigned count,
                      double tolerance)
{
    struct program_output *o = &r->output[r->outputs++];
    *o = (struct program_output){
        .buffer = r->buffers - 1, .type = type, .count = count, .tolerance = tolerance};
    return o->want;
}

/* ---- the programs ---------------------------------------------------------------------------- */

#define CLOSE 1e-5 /* of sums of floats */

static void saxpy(struct program_run *r)
{
    const unsigned n = 4000;
    value(r, gpud_i32((int)n));
    value(r, gpud_f32(2.5f));
    const float *x = floats(r, n);
    const float *y = floats(r, n);
    double *want = output(r, PROGRAM_F32, n, CLOSE);
    for (unsigned i = 0; i < n; i++) {
        want[i] = 2.5 * (double)x[i] + (double)y[i];
    }
    grid(r, n, 1, 256, 1);
}

static void matmul(struct program_run *r)
{
    const unsigned n = 50;
    const float *a = floats(r, n * n);
    const float *b = floats(r, n * n);
    (void)zeros(r, GPUD_F32, n * n);
    double *want = output(r, PROGRAM_F32, n * n, CLOSE);
    for (unsigned i = 0; i < n * n; i++) {
        for (unsigned k = 0; k < n; k++) {
            want[i] += (double)a[i / n * n + k] * (double)b[k * n + i % n];
        }
    }
    value(r, gpud_i32((int)n));
    grid(r, n, n, 16, 16);
}

static void reduce(struct program_run *r)
{
    const unsigned n = 4000;
    const float *x = floats(r, n);
    (void)zeros(r, GPUD_F32, 4);
    double *want = output(r, PROGRAM_F32, 4, CLOSE * 10);
    for (unsigned i = 0; i < n; i++) {
        want[i / 256 % 4] += (double)x[i];
    }
    value(r, gpud_i32((int)n));
    grid(r, 1024, 1, 256, 1);
}

static void histogram(struct program_run *r)
{
    const unsigned n = 30000;
    unsigned char *x = zeros(r, GPUD_U8, n);
    (void)zeros(r, GPUD_U32, 256);
    double *want = output(r, PROGRAM_I32, 256, 0);
    for (unsigned i = 0; i < n; i++) {
        x[i] = (unsigned char)(random_next(r) & random_next(r));
        want[x[i]] += 1;
    }
    value(r, gpud_u64(n));
    grid(r, 1024, 1, 256, 1);
}

static void scan(struct program_run *r)
{
    const unsigned n = 1000;
    const unsigned block = 256;
    (void)zeros(r, GPUD_I32, n);
    double *want = output(r, PROGRAM_I32, n, 0);
    const int32_t *x = integers(r, n, 1000);
    for (unsigned i = 0; i < n; i++) {
        want[i] = x[i] + (i % block == 0 ? 0 : want[i - 1]);
    }
    value(r, gpud_i32((int)n));
    grid(r, n, 1, block, 1);
    r->grid.shared_bytes = 2 * (uint64_t)block * sizeof(int32_t);
}

static void transpose(struct program_run *r)
{
    const unsigned width = 100;
    const unsigned height = 60;
    (void)zeros(r, GPUD_F32, width * height);
    double *want = output(r, PROGRAM_F32, width * height, 0);
    const float *x = floats(r, width * height);
    for (unsigned i = 0; i < width * height; i++) {
        want[i] = (double)x[i % height * width + i / height];
    }
    value(r, gpud_i32((int)width));
    value(r, gpud_i32((int)height));
    r->grid = (gpud_grid){.size = sizeof r->grid, .global = {128, 16, 1}, .local = {32, 8, 1}};
}

static void heat2d(struct program_run *r)
{
    const unsigned nx = 70;
    const unsigned ny = 50;
    (void)zeros(r, GPUD_F32, nx * ny);
    double *want = output(r, PROGRAM_F32, nx * ny, CLOSE);
    const float *x = floats(r, nx * ny);
    for (unsigned i = 0; i < nx * ny; i++) {
        bool inside = i % nx > 0 && i % nx < nx - 1 && i / nx > 0 && i / nx < ny - 1;
        want[i] = (double)x[i];
        if (inside) {
            want[i] += 0.1 * ((double)x[i - 1] + (double)x[i + 1] + (double)x[i - nx] +
                              (double)x[i + nx] - 4 * (double)x[i]);
        }
    }
    value(r, gpud_i32((int)nx));
    value(r, gpud_i32((int)ny));
    value(r, gpud_f32(0.1f));
    grid(r, nx, ny, 16, 16);
}

static void stencil3d(struct program_run *r)
{
    const unsigned n[] = {20, 18, 11};
    const unsigned plane = n[0] * n[1];
    const double *x = doubles(r, plane * n[2]);
    (void)zeros(r, GPUD_F64, plane * n[2]);
    double *want = output(r, PROGRAM_F64, plane * n[2], 1e-13);
    for (unsigned i = plane; i < plane * (n[2] - 1); i++) {
        unsigned at[] = {i % n[0], i % plane / n[0]};
        if (at[0] > 0 && at[0] < n[0] - 1 && at[1] > 0 && at[1] < n[1] - 1) {
            want[i] = -6.0 * x[i] + 0.5 * (x[i - plane] + x[i + plane] + x[i - 1] + x[i + 1] +
                                           x[i - n[0]] + x[i + n[0]]);
        }
    }
    for (unsigned i = 0; i < 3; i++) {
        value(r, gpud_i32((int)n[i]));
    }
    value(r, gpud_f64(-6));
    value(r, gpud_f64(0.5));
    grid(r, n[0], n[1], 8, 8);
}

static void axpby(struct program_run *r)
{
    const unsigned n = 3001;
    const double *x = doubles(r, n);
    const double *y = doubles(r, n);
    double *want = output(r, PROGRAM_F64, n, 1e-13);
    for (unsigned i = 0; i < n; i++) {
        want[i] = 1.5 * x[i] - 0.25 * y[i];
    }
    value(r, gpud_f64(1.5));
    value(r, gpud_f64(-0.25));
    value(r, gpud_i32((int)n));
    grid(r, (n + 3) / 4, 1, 128, 1);
}

static void grid_stride(struct program_run *r)
{
    const unsigned n = 5000;
    const float *x = floats(r, n);
    (void)zeros(r, GPUD_F32, n);
    double *want = output(r, PROGRAM_F32, n, CLOSE);
    for (unsigned i = 0; i < n; i++) {
        double v = (double)x[i];
        want[i] = fmax(((0.5 * v - 1) * v + 0.25) * v + 2, 0);
    }
    value(r, gpud_u64(n));
    grid(r, 512, 1, 128, 1);
}

static void convolve(struct program_run *r)
{
    static const double filter[] = {0.0625, 0.125, 0.25, 0.5, 1, 0.5, 0.25, 0.125, 0.0625};
    const int n = 2000;
    const float *x = floats(r, (unsigned)n);
    (void)zeros(r, GPUD_F32, (unsigned)n);
    double *want = output(r, PROGRAM_F32, (unsigned)n, CLOSE);
    for (int i = 0; i < n; i++) {
        for (int k = -4; k <= 4; k++) {
            want[i] += i + k >= 0 && i + k < n ? (double)x[i + k] * filter[k + 4] : 0;
        }
    }
    value(r, gpud_i32(n));
    grid(r, (unsigned)n, 1, 128, 1);
}

static void nbody(struct program_run *r)
{
    static const struct {
        int n;
        float softening, wind[3];
    } params = {150, 0.25f, {0.5f, 0, -1}};
    const unsigned n = (unsigned)params.n;
    const float *p = floats(r, 4 * n);
    (void)zeros(r, GPUD_F32, 4 * n);
    double *want = output(r, PROGRAM_F32, 4 * n, CLOSE * 100);
    for (unsigned i = 0; i < n; i++) {
        double *a = &want[4 * (size_t)i];
        for (unsigned c = 0; c < 3; c++) {
            a[c] = (double)params.wind[c];
        }
        a[3] = (double)p[4 * i + 3];
        for (unsigned j = 0; j < n; j++) {
            double d[3];
            double r2 = (double)params.softening;
            for (unsigned c = 0; c < 3; c++) {
                d[c] = (double)p[4 * j + c] - (double)p[4 * i + c];
                r2 += d[c] * d[c];
            }
            for (unsigned c = 0; c < 3; c++) {
                a[c] += d[c] * (double)p[4 * j + 3] / (r2 * sqrt(r2));
            }
        }
    }
    value(r, gpud_bytes(&params, sizeof params));
    grid(r, n, 1, 64, 1);
}

static void groups(struct program_run *r)
{
    const unsigned n = 1000;
    const int32_t *x = integers(r, n, 1000);
    (void)zeros(r, GPUD_I32, 32);
    double *largest = output(r, PROGRAM_I32, 32, 0);
    (void)zeros(r, GPUD_I32, 4);
    double *sums = output(r, PROGRAM_I32, 4, 0);
    for (unsigned i = 0; i < n; i++) {
        largest[i / 32] = fmax(largest[i / 32], x[i]);
        sums[i / 256] += x[i];
    }
    value(r, gpud_i32((int)n));
    grid(r, n, 1, 256, 1);
}

static void half_products(struct program_run *r)
{
    const unsigned n = 2000;
    const float *x = floats(r, n);
    (void)zeros(r, GPUD_F32, n);
    double *as_half = output(r, PROGRAM_F32, n, 1.0 / 1024);
    (void)zeros(r, GPUD_F32, n);
    double *as_bf16 = output(r, PROGRAM_F32, n, 1.0 / 64);
    for (unsigned i = 0; i < n; i++) {
        as_half[i] = (double)x[i] * (double)x[i] + 1;
        as_bf16[i] = (double)x[i] * (double)x[i];
    }
    value(r, gpud_i32((int)n));
    grid(r, n / 2, 1, 128, 1);
}

static void atomics64(struct program_run *r)
{
    const unsigned n = 2000;
    uint64_t *x = zeros(r, GPUD_U64, n);
    double sum = 0;
    double most = 0;
    for (unsigned i = 0; i < n; i++) {
        x[i] = (uint64_t)random_next(r) << 14;
        sum += (double)x[i]; /* below 2^53 */
        most = fmax(most, (double)x[i]);
    }
    (void)zeros(r, GPUD_U64, 1);
    output(r, PROGRAM_U64, 1, 0)[0] = sum;
    (void)zeros(r, GPUD_U64, 1);
    output(r, PROGRAM_U64, 1, 0)[0] = most;
    (void)zeros(r, GPUD_F64, 1);
    output(r, PROGRAM_F64, 1, 0)[0] = 16; /* 32 halves */
    value(r, gpud_i32((int)n));
    grid(r, n, 1, 128, 1);
}

static double mix(double a, double b, double t)
{
    return a + t * (b - a);
}

static void bilinear(struct program_run *r)
{
    static const struct {
        int width, height, channels;
    } s = {40, 30, 3}, d = {64, 40, 3};
    unsigned char *x = zeros(r, GPUD_U8, (unsigned)(s.width * s.height * s.channels));
    for (size_t i = 0; i < r->bytes[0]; i++) {
        x[i] = (unsigned char)random_next(r);
    }
    (void)zeros(r, GPUD_U8, (unsigned)(d.width * d.height * d.channels));
    double *want = output(r, PROGRAM_U8, (unsigned)r->bytes[1], 0);
    r->output[0].odd = 40; /* half a step is rounded to either side */
    for (int i = 0; i < (int)r->bytes[1]; i++) {
        const int px = i / 3 % d.width;
        const int py = i / 3 / d.width;
        double fx = fmin(fmax((px + 0.5) * s.width / d.width - 0.5, 0), s.width - 1);
        double fy = fmin(fmax((py + 0.5) * s.height / d.height - 0.5, 0), s.height - 1);
        int at[] = {(int)fx, (int)fy};
        int next[] = {at[0] + 1 < s.width ? at[0] + 1 : at[0],
                      at[1] + 1 < s.height ? at[1] + 1 : at[1]};
        double row[2];
        for (int k = 0; k < 2; k++) {
            int y = k == 0 ? at[1] : next[1];
            row[k] = mix(x[(y * s.width + at[0]) * 3 + i % 3],
                         x[(y * s.width + next[0]) * 3 + i % 3], fx - at[0]);
        }
        want[i] = floor(mix(row[0], row[1], fy - at[1]) + 0.5);
    }
    value(r, gpud_bytes(&s, sizeof s));
    value(r, gpud_bytes(&d, sizeof d));
    grid(r, (unsigned)d.width, (unsigned)d.height, 16, 8);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void bitonic(struct program_run *r)
{
    const unsigned n = 2048;
    uint32_t *keys = zeros(r, GPUD_U32, n);
    double *want = output(r, PROGRAM_I32, n, 0);
    for (unsigned i = 0; i < n; i++) {
        keys[i] = random_next(r);
        want[i] = keys[i];
    }
    qsort(want, n / 2, sizeof *want, by_size);
    qsort(want + n / 2, n / 2, sizeof *want, by_size);
    grid(r, n / 2, 1, 512, 1);
}

static void spmv(struct program_run *r)
{
    const unsigned rows = 200;
    value(r, gpud_i32((int)rows));
    int32_t *begin = zeros(r, GPUD_I32, rows + 1);
    for (unsigned i = 0; i < rows; i++) {
        begin[i + 1] = begin[i] + (int32_t)(i * 7 % 40);
    }
    const unsigned count = (unsigned)begin[rows];
    const int32_t *column = integers(r, count, rows);
    const float *a = floats(r, count);
    const float *x = floats(r, rows);
    (void)zeros(r, GPUD_F32, rows);
    double *want = output(r, PROGRAM_F32, rows, CLOSE);
    for (unsigned i = 0; i < rows; i++) {
        for (int32_t k = begin[i]; k < begin[i + 1]; k++) {
            want[i] += (double)a[k] * (double)x[column[k]];
        }
    }
    grid(r, rows * 32, 1, 128, 1);
}

static void monte_carlo(struct program_run *r)
{
    const unsigned threads = 512;
    const int rounds = 100;
    (void)zeros(r, GPUD_U32, 1);
    double *want = output(r, PROGRAM_I32, 1, 0);
    for (uint32_t t = 0; t < threads; t++) {
        uint32_t state = (t + 1) * 747796405u + 2891336453u;
        for (int i = 0; i < rounds; i++) {
            uint64_t at[2];
            for (unsigned c = 0; c < 2; c++) {
                state ^= state << 13;
                state ^= state >> 17;
                state ^= state << 5;
                at[c] = state >> 16;
            }
            want[0] += at[0] * at[0] + at[1] * at[1] <= UINT64_C(65535) * 65535;
        }
    }
    value(r, gpud_i32(rounds));
    grid(r, threads, 1, 128, 1);
}

static void mandelbrot(struct program_run *r)
{
    const unsigned width = 64;
    const unsigned height = 48;
    const int limit = 100;
    (void)zeros(r, GPUD_I32, width * height);
    double *want = output(r, PROGRAM_I32, width * height, 0);
    r->output[0].odd = width * height / 50;
    for (unsigned i = 0; i < width * height; i++) {
        const unsigned at[] = {i % width, i / width};
        const double c[] = {-2.0 + at[0] * (3.0 / 64), -1.1875 + at[1] * (3.0 / 64)};
        double z[] = {0, 0};
        int n = 0;
        while (n < limit && z[0] * z[0] + z[1] * z[1] < 4) {
            double t = z[0] * z[0] - z[1] * z[1] + c[0];
            z[1] = 2 * z[0] * z[1] + c[1];
            z[0] = t;
            n++;
        }
        want[i] = n;
    }
    value(r, gpud_i32((int)width));
    value(r, gpud_i32((int)height));
    value(r, gpud_f32(-2.0f));
    value(r, gpud_f32(-1.1875f));
    value(r, gpud_f32(3.0f / 64));
    value(r, gpud_f32(3.0f / 64));
    value(r, gpud_i32(limit));
    grid(r, width, height, 16, 16);
}

const struct program programs[] = {
    {"saxpy", saxpy},
    {"matmul", matmul},
    {"reduce", reduce},
    {"histogram", histogram},
    {"scan", scan},
    {"transpose", transpose},
    {"heat2d", heat2d},
    {"stencil3d", stencil3d},
    {"axpby", axpby},
    {"grid_stride", grid_stride},
    {"convolve", convolve},
    {"nbody", nbody},
    {"groups", groups},
    {"half", half_products},
    {"atomics64", atomics64},
    {"bilinear", bilinear},
    {"bitonic", bitonic},
    {"spmv", spmv},
    {"monte_carlo", monte_carlo},
    {"mandelbrot", mandelbrot},
};
const unsigned program_count = sizeof programs / sizeof programs[0];

/* ---- what came of it ------------------------------------------------------------------------- */

void program_prepare(const struct program *p, struct program_run *r)
{
    memset(r, 0, sizeof *r);
    r->name = p->name;
    r->random = 12345;
    p->prepare(r);
}

double program_value(const struct program_output *o, const void *data, unsigned i)
{
    switch (o->type) {
    case PROGRAM_F32:
        return (double)((const float *)data)[i];
    case PROGRAM_F64:
        return ((const double *)data)[i];
    case PROGRAM_I32:
        return ((const int32_t *)data)[i];
    case PROGRAM_U64:
        return (double)((const uint64_t *)data)[i];
    default:
        return ((const unsigned char *)data)[i];
    }
}

unsigned program_wrong(const struct program_output *o, const void *data, unsigned *ret_first)
{
    unsigned wrong = 0;
    for (unsigned i = 0; i < o->count; i++) {
        double off = fabs(program_value(o, data, i) - o->want[i]);
        if (!(off <= o->tolerance * (1 + fabs(o->want[i])))) { /* NaN is wrong, too */
            *ret_first = wrong == 0 ? i : *ret_first;
            wrong++;
        }
    }
    return wrong <= o->odd ? 0 : wrong;
}
