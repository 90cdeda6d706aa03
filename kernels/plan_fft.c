/* Discrete Fourier transform of a power of two, Stockham's order: log2 n launches that write from
 * one array to another, the last one to the caller's. */
#include "kernels/plan_int.h"

static unsigned log2_of(uint64_t n)
{
    unsigned bits = 0;
    while (n > 1) {
        n /= 2;
        bits++;
    }
    return bits;
}

static void fft(struct plan_build *b, double sign, bool scaled)
{
    struct plan_ref src = plan_user(b, 0), dst = plan_user(b, 1);
    int dtype = b->binding->dtype;
    uint64_t n = shape_count(&src.shape) / 2;
    if ((n & (n - 1)) != 0) {
        plan_fail(b, ERR_ARG_SHAPE, "n = %llu is no power of two", (unsigned long long)n);
        return;
    }
    if (n == 1) {
        plan_copy(b, dst, src);
    }
    if (n < 2) {
        return;
    }
    const uint64_t dims[] = {n, 2};
    unsigned passes = log2_of(n);
    struct plan_ref room[2] = {src, src};
    for (unsigned t = 0; t < 2 && t + 1 < passes; t++) {
        room[t] = plan_array(plan_temp(b, dtype, n * 2), 2, dims);
    }
    src = plan_array(src, 2, dims);
    dst = plan_array(dst, 2, dims);
    for (unsigned p = 0; p < passes; p++) {
        bool last = p + 1 == passes;
        struct plan_ref to = last ? dst : room[p % 2];
        struct plan_ref scale = plan_real(dtype, last && scaled ? 1.0 / (double)n : 1.0);
        const struct plan_ref args[] = {src, plan_u64(UINT64_C(1) << p), plan_real(dtype, sign),
                                        scale, to};
        plan_launch(b, "fft_pass", args, 5);
        src = to;
    }
}

static void make_fft(struct plan_build *b)
{
    fft(b, -1.0, false);
}

static void make_ifft(struct plan_build *b)
{
    fft(b, 1.0, true);
}

const struct plan_operation plan_fft = {"fft<T: f32 f64>(in T x[n,2], out T y[n,2])", make_fft};
const struct plan_operation plan_ifft = {"ifft<T: f32 f64>(in T x[n,2], out T y[n,2])", make_ifft};
