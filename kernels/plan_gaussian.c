/* Gaussian blur: rows, then columns, with weights up to three standard deviations. */
#include <math.h>
#include <string.h>

#include "kernels/plan_int.h"

#define RADIUS_MAX 256u
#define SIGMA_MIN  0.05f /* below it the next pixel's weight, exp(-200), is 0 in f32 */

static void make_gaussian(struct plan_build *b)
{
    struct plan_ref src = plan_user(b, 0), dst = plan_user(b, 1), sigma = plan_user(b, 2);
    uint32_t bits = (uint32_t)sigma.bits;
    float value = 0;
    memcpy(&value, &bits, sizeof(value));
    if (!(value > 0.0f) || value * 3.0f > (float)RADIUS_MAX) {
        plan_fail(b, ERR_RANGE, "sigma %g is not in (0, %g]", (double)value,
                  (double)RADIUS_MAX / 3.0);
        return;
    }
    uint64_t count = shape_count(&src.shape);
    if (count == 0) {
        return;
    }
    const uint64_t dims[] = {b->binding->dim[0], b->binding->dim[1]};
    /* a smaller sigma changes no pixel, and its square may underflow in f32 */
    uint64_t radius = value < SIGMA_MIN ? 0 : (uint64_t)ceilf(value * 3.0f);
    struct plan_ref weights = plan_temp(b, DTYPE_F32, radius + 1);
    struct plan_ref rows = plan_array(plan_temp(b, DTYPE_F32, count), 2, dims);
    const struct plan_ref weight_args[] = {sigma, weights};
    const struct plan_ref row_args[] = {plan_array(src, 2, dims), weights, rows};
    const struct plan_ref column_args[] = {rows, weights, plan_array(dst, 2, dims)};
    plan_launch(b, "gaussian_weights", weight_args, 2);
    plan_launch(b, "gaussian_rows", row_args, 3);
    plan_launch(b, "gaussian_columns", column_args, 3);
}

const struct plan_operation plan_gaussian = {
    "gaussian(in f32 src[h,w], out f32 dst[h,w], f32 sigma) alias any", make_gaussian};
