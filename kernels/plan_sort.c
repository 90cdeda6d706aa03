/* Radix sort of u32 keys, 4 bits a pass from the lowest. A pass counts the digits of each block,
 * scans the counts, and moves each key to its place. Each pass is stable, so it keeps the order of
 * earlier passes. */
#include "kernels/plan_int.h"

#define BLOCK  4096u /* keys of one group, as in src/sort.gk */
#define DIGITS 16u
#define PASSES 8u

static void make_sort(struct plan_build *b)
{
    struct plan_ref keys = plan_user(b, 0);
    uint64_t count = shape_count(&keys.shape);
    uint64_t blocks = count / BLOCK + (count % BLOCK != 0);
    if (count < 2) {
        return;
    }
    if (count > UINT32_MAX) {
        plan_fail(b, ERR_LIMIT, "at most 2^32 - 1 keys");
        return;
    }
    b->plan->library = true;
    struct plan_scan_space space;
    struct plan_ref other = plan_temp(b, DTYPE_U32, count);
    struct plan_ref counts = plan_temp(b, DTYPE_U32, blocks * DIGITS);
    struct plan_ref places = plan_temp(b, DTYPE_U32, blocks * DIGITS);
    plan_scan_space_make(b, DTYPE_U32, blocks * DIGITS, &space);
    for (unsigned pass = 0; pass < PASSES; pass++) {
        struct plan_ref shift = plan_u32(pass * 4);
        struct plan_ref from = pass % 2 == 0 ? keys : other;
        struct plan_ref to = pass % 2 == 0 ? other : keys;
        const struct plan_ref count_args[] = {from, shift, counts};
        const struct plan_ref move_args[] = {from, shift, places, to};
        plan_launch(b, "sort_count", count_args, 3);
        plan_scan_steps(b, &space, false, counts, places);
        plan_launch(b, "sort_move", move_args, 4);
    }
}

const struct plan_operation plan_sort = {"sort(inout u32 keys[n])", make_sort};
