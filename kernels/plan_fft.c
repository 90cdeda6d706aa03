/* Discrete Fourier transforms of powers of two by Stockham's algorithm: log2 n launches, each from
 * one array to another; the last launch writes the caller's array. */
#include "kernels/plan_int.h"

/* An axis: transforms of n numbers each, of which `width` are interleaved element by element. */
struct axis {
    uint64_t n, width;
};

/* The state of the passes over all axes, which write to two temporaries in turn. */
struct passes {
    struct plan_ref src, dst;
    struct plan_ref room[2];
    unsigned done, count;
    uint64_t pairs; /* work items of a pass */
    double sign;
    double scale; /* applied by the last pass */
};

static unsigned log2_of(uint64_t n)
{
    unsigned bits = 0;
    while (n > 1) {
        n /= 2;
        bits++;
    }
    return bits;
}

static void axis_passes(struct plan_build *b, struct passes *p, struct axis axis)
{
    int dtype = b->binding->dtype;
    for (uint64_t span = 1; span < axis.n; span *= 2) {
        bool last = p->done + 1 == p->count;
        struct plan_ref to = last ? p->dst : p->room[p->done % 2];
        const struct plan_ref args[] = {p->src,
                                        plan_u64(axis.n / 2),
                                        plan_u64(axis.width),
                                        plan_u64(span),
                                        plan_real(dtype, p->sign),
                                        plan_real(dtype, last ? p->scale : 1.0),
                                        to};
        plan_launch(b, "fft_pass", args, 7);
        p->src = to;
        p->done++;
    }
}

static bool axis_fits(struct plan_build *b, const char *name, uint64_t n)
{
    if ((n & (n - 1)) != 0) {
        plan_fail(b, ERR_ARG_SHAPE, "%s = %llu is no power of two", name, (unsigned long long)n);
    }
    return b->code == 0;
}

/* Offers the operation to a library. A library does not scale, so a step after it does. */
static void library_offer(struct plan_build *b, const struct passes *p, uint64_t numbers)
{
    const uint64_t flat[] = {numbers * 2};
    b->plan->library = true;
    if (p->scale < 1.0) {
        struct plan_ref y = plan_array(p->dst, 1, flat);
        const struct plan_ref args[] = {plan_real(b->binding->dtype, p->scale), y, y};
        plan_launch(b, "scale", args, 3);
        b->plan->after = 1;
    }
}

/* Transforms the caller's array along all axes, first to last. */
static void transform(struct plan_build *b, const struct axis *axis, unsigned axes, double sign,
                      double scale)
{
    struct passes p = {
        .src = plan_user(b, 0), .dst = plan_user(b, 1), .sign = sign, .scale = scale};
    uint64_t numbers = shape_count(&p.src.shape) / 2;
    for (unsigned a = 0; a < axes; a++) {
        p.count += log2_of(axis[a].n);
    }
    if (numbers == 0) {
        return;
    }
    if (p.count == 0) {
        plan_copy(b, p.dst, p.src);
        return;
    }
    library_offer(b, &p, numbers);
    const uint64_t dims[] = {numbers, 2};
    for (unsigned t = 0; t < 2 && t + 1 < p.count; t++) {
        p.room[t] = plan_array(plan_temp(b, b->binding->dtype, numbers * 2), 2, dims);
    }
    p.src = plan_array(p.src, 2, dims);
    p.dst = plan_array(p.dst, 2, dims);
    for (unsigned a = 0; a < axes; a++) {
        axis_passes(b, &p, axis[a]);
    }
}

static double inverse_of(uint64_t count)
{
    return count > 0 ? 1.0 / (double)count : 1.0;
}

static void one(struct plan_build *b, double sign)
{
    struct axis axis = {shape_count(&b->values[0].shape) / 2, 1};
    if (axis_fits(b, "n", axis.n)) {
        transform(b, &axis, 1, sign, sign < 0 ? 1.0 : inverse_of(axis.n));
    }
}

static void many(struct plan_build *b, double sign)
{
    struct axis axis = {b->binding->dim[1], 1};
    if (axis_fits(b, "n", axis.n)) {
        transform(b, &axis, 1, sign, sign < 0 ? 1.0 : inverse_of(axis.n));
    }
}

static void plane(struct plan_build *b, double sign)
{
    uint64_t h = b->binding->dim[0], w = b->binding->dim[1];
    const struct axis axis[] = {{w, 1}, {h, w}};
    if (axis_fits(b, "h", h) && axis_fits(b, "w", w)) {
        transform(b, axis, 2, sign, sign < 0 ? 1.0 : inverse_of(h * w));
    }
}

static void make_fft(struct plan_build *b)
{
    one(b, -1.0);
}

static void make_ifft(struct plan_build *b)
{
    one(b, 1.0);
}

static void make_fft_batched(struct plan_build *b)
{
    many(b, -1.0);
}

static void make_ifft_batched(struct plan_build *b)
{
    many(b, 1.0);
}

static void make_fft_2d(struct plan_build *b)
{
    plane(b, -1.0);
}

static void make_ifft_2d(struct plan_build *b)
{
    plane(b, 1.0);
}

const struct plan_operation plan_fft = {"fft<T: f32 f64>(in T x[n,2], out T y[n,2]) alias same",
                                        make_fft};
const struct plan_operation plan_ifft = {"ifft<T: f32 f64>(in T x[n,2], out T y[n,2]) alias same",
                                         make_ifft};
const struct plan_operation plan_fft_batched = {
    "fft_batched<T: f32 f64>(in T x[m,n,2], out T y[m,n,2]) alias same", make_fft_batched};
const struct plan_operation plan_ifft_batched = {
    "ifft_batched<T: f32 f64>(in T x[m,n,2], out T y[m,n,2]) alias same", make_ifft_batched};
const struct plan_operation plan_fft_2d = {
    "fft_2d<T: f32 f64>(in T x[h,w,2], out T y[h,w,2]) alias same", make_fft_2d};
const struct plan_operation plan_ifft_2d = {
    "ifft_2d<T: f32 f64>(in T x[h,w,2], out T y[h,w,2]) alias same", make_ifft_2d};
