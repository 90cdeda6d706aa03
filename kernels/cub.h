/*
 * The interface of libgpud-cub.so: CUB's device-wide algorithms, compiled by nvcc with gpud, so
 * that no C source needs CUB. One function; with a workspace of NULL it returns the workspace's
 * size. It returns a cudaError_t (0: the work is enqueued on the stream).
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
    GPUD_CUB_SCAN_EXCLUSIVE, /* i32 u32 */
};

struct gpud_cub_call {
    int operation; /* enum gpud_cub_operation */
    int dtype;     /* enum dtype: f32 f64 i32 u32 */
    const void *in;
    void *out;
    uint64_t count; /* elements, > 0 */
};

#endif
