/* Counts by value. Up to LOCAL_BINS bins are counted in local memory first. */
#include "kernels/plan_int.h"

#define LOCAL_BINS 1024u /* as in src/histogram.gk */

static void make_histogram(struct plan_build *b)
{
    struct plan_ref x = plan_user(b, 0), bins = plan_user(b, 1);
    uint64_t count = shape_count(&bins.shape);
    if (count == 0) {
        return;
    }
    plan_fill(b, bins, plan_u32(0));
    if (shape_count(&x.shape) != 0) {
        const struct plan_ref args[] = {x, bins};
        plan_launch(b, count <= LOCAL_BINS ? "histogram_local" : "histogram_global", args, 2);
    }
}

const struct plan_operation plan_histogram = {
    "histogram<T: u32 i32 u8>(in T x[n], out u32 bins[m])", make_histogram};
