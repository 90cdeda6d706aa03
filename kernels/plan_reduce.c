/* Reductions to one value: each launch reduces 4096 values to one, until one is left. */
#include "kernels/plan_int.h"

#define PART 4096u /* elements of one group, as in src/reduce.gk and src/dot.gk */

static uint64_t part_count(uint64_t count)
{
    return count / PART + (count % PART != 0);
}

void plan_reduce_steps(struct plan_build *b, const char *kernel, struct plan_ref src,
                       struct plan_ref dst)
{
    uint64_t count = shape_count(&src.shape);
    struct plan_ref args[2] = {src};
    while (count > PART && b->code == 0) {
        count = part_count(count);
        args[1] = plan_temp(b, dst.shape.dtype, count);
        plan_launch(b, kernel, args, 2);
        args[0] = args[1];
    }
    args[1] = dst;
    plan_launch(b, kernel, args, 2);
}

static void reduce(struct plan_build *b, const char *kernel, uint64_t identity)
{
    struct plan_ref src = plan_user(b, 0), dst = plan_user(b, 1);
    if (shape_count(&src.shape) == 0) {
        plan_fill(b, dst, plan_scalar(b->binding->dtype, identity));
        return;
    }
    b->plan->library = true;
    plan_reduce_steps(b, kernel, src, dst);
}

static void make_sum(struct plan_build *b)
{
    reduce(b, "reduce_sum_part", 0);
}

static void make_min(struct plan_build *b)
{
    reduce(b, "reduce_min_part", plan_highest(b->binding->dtype));
}

static void make_max(struct plan_build *b)
{
    reduce(b, "reduce_max_part", plan_lowest(b->binding->dtype));
}

static void make_dot(struct plan_build *b)
{
    struct plan_ref x = plan_user(b, 0), y = plan_user(b, 1), dst = plan_user(b, 2);
    uint64_t parts = part_count(shape_count(&x.shape));
    if (parts == 0) {
        plan_fill(b, dst, plan_scalar(b->binding->dtype, 0));
        return;
    }
    struct plan_ref part = parts == 1 ? dst : plan_temp(b, b->binding->dtype, parts);
    const struct plan_ref args[] = {x, y, part};
    plan_launch(b, "dot_part", args, 3);
    if (parts > 1) {
        plan_reduce_steps(b, "reduce_sum_part", part, dst);
    }
}

const struct plan_operation plan_reduce_sum = {
    "reduce_sum<T: f32 f64 i32 u32>(in T x[n], out T sum[1])", make_sum};
const struct plan_operation plan_reduce_min = {
    "reduce_min<T: f32 f64 i32 u32>(in T x[n], out T least[1])", make_min};
const struct plan_operation plan_reduce_max = {
    "reduce_max<T: f32 f64 i32 u32>(in T x[n], out T most[1])", make_max};
const struct plan_operation plan_dot = {
    "dot<T: f32 f64 i32 u32>(in T x[n], in T y[n], out T sum[1])", make_dot};
