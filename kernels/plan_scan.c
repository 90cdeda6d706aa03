/* Prefix sums: scans blocks of 1024, then the blocks' sums in the same way, then adds these. */
#include "kernels/plan_int.h"

#define BLOCK 1024u /* elements of one group, as in src/scan.gk */

void plan_scan_space_make(struct plan_build *b, int dtype, uint64_t count,
                          struct plan_scan_space *ret_space)
{
    struct plan_scan_space s = {.levels = 0};
    do {
        count = count / BLOCK + (count % BLOCK != 0);
        s.sums[s.levels] = plan_temp(b, dtype, count);
        s.offsets[s.levels++] = count > 1 ? plan_temp(b, dtype, count) : s.sums[0];
    } while (count > 1 && s.levels < PLAN_SCAN_LEVELS);
    *ret_space = s;
}

void plan_scan_steps(struct plan_build *b, const struct plan_scan_space *space, bool inclusive,
                     struct plan_ref src, struct plan_ref dst)
{
    struct plan_ref data[PLAN_SCAN_LEVELS + 1] = {dst};
    const char *kernel = inclusive ? "scan_block_inclusive" : "scan_block_exclusive";
    for (unsigned l = 0; l < space->levels; l++) {
        const struct plan_ref args[] = {src, data[l], space->sums[l]};
        plan_launch(b, kernel, args, 3);
        kernel = "scan_block_exclusive";
        src = space->sums[l];
        data[l + 1] = space->offsets[l];
    }
    /* the last level is the total of one block, which is not needed */
    for (unsigned l = space->levels - 1; l > 0; l--) {
        const struct plan_ref args[] = {data[l - 1], data[l]};
        plan_launch(b, "scan_add", args, 2);
    }
}

static void scan(struct plan_build *b, bool inclusive)
{
    struct plan_ref src = plan_user(b, 0), dst = plan_user(b, 1);
    struct plan_scan_space space;
    uint64_t count = shape_count(&src.shape);
    if (count == 0) {
        return;
    }
    b->plan->library = true;
    plan_scan_space_make(b, b->binding->dtype, count, &space);
    plan_scan_steps(b, &space, inclusive, src, dst);
}

static void make_inclusive(struct plan_build *b)
{
    scan(b, true);
}

static void make_exclusive(struct plan_build *b)
{
    scan(b, false);
}

const struct plan_operation plan_scan_inclusive = {
    "scan_inclusive<T: f32 f64 i32 u32>(in T x[n], out T y[n]) alias same", make_inclusive};
const struct plan_operation plan_scan_exclusive = {
    "scan_exclusive<T: f32 f64 i32 u32>(in T x[n], out T y[n]) alias same", make_exclusive};
