/*
 * What libgpud-cub.so offers: CUB's device-wide algorithms, compiled by nvcc with gpud. One call; a
 * workspace of NULL asks for its size. Returns a cudaError_t (0: all is well; enqueued on the
 * stream). The front's and the worker's C never see CUB.
 */
#ifndef KERNELS_CUB_H
#define KERNELS_CUB_H

#include <stddef.h>
#include <stdint.h>

enum gpud_cub_operation {
    GPUD_CUB_SORT, /* u32, in place */
    GPUD_CUB_SUM,
    GPUD_CUB_MIN,
    GPUD_CUB_MAX,
    GPUD_CUB_SCAN_INCLUSIVE, /* i32 u32 */
    GPUD_CUB_SCAN_EXCLUSIVE, /* the same */
};

struct gpud_cub_call {
    int operation; /* enum gpud_cub_operation */
    int dtype;     /* enum dtype: f32 f64 i32 u32 */
    const void *in;
    void *out;
    uint64_t count; /* elements, > 0 */
};

#endif
