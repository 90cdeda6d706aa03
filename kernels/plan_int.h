/* Between plan.c, plan_build.c and the operations; nothing else includes it. */
#ifndef KERNELS_PLAN_INT_H
#define KERNELS_PLAN_INT_H

#include "kernels/plan.h"

/* A plan under construction. `code` keeps the first failure; later additions are ignored. */
struct plan_build {
    struct plan *plan;
    const struct signature *sig;
    const struct sig_value *values;
    const struct sig_binding *binding;
    int code;
    struct err *e;
};

typedef void (*plan_fn)(struct plan_build *b);

struct plan_operation {
    const char *text; /* the signature */
    plan_fn make;
};

extern const struct plan_operation plan_reduce_sum, plan_reduce_min, plan_reduce_max, plan_dot;
extern const struct plan_operation plan_scan_inclusive, plan_scan_exclusive;
extern const struct plan_operation plan_histogram, plan_sort, plan_gaussian;
extern const struct plan_operation plan_fft, plan_fft_batched, plan_fft_2d;
extern const struct plan_operation plan_ifft, plan_ifft_batched, plan_ifft_2d;

/* plan_fail(b, ERR_…, "format", …) */
#define plan_fail(build, error, ...)                                                               \
    ((build)->code == 0 ? plan_failed((build), err_set((build)->e, (error), __VA_ARGS__)) : (void)0)
void plan_failed(struct plan_build *b, int code);

/* The memory and values that a step can refer to. */
struct plan_ref plan_user(const struct plan_build *b, unsigned arg); /* the caller's argument */
struct plan_ref plan_temp(struct plan_build *b, int dtype, uint64_t count); /* 1-dimensional */
struct plan_ref plan_array(struct plan_ref ref, unsigned ndim, const uint64_t *dims);
struct plan_ref plan_u32(uint32_t value);
struct plan_ref plan_u64(uint64_t value);
struct plan_ref plan_scalar(int dtype, uint64_t bits);
struct plan_ref plan_real(int dtype, double value); /* f32 or f64 */

void plan_launch(struct plan_build *b, const char *kernel, const struct plan_ref *args,
                 unsigned count);
void plan_copy(struct plan_build *b, struct plan_ref dst, struct plan_ref src);
void plan_fill(struct plan_build *b, struct plan_ref dst, struct plan_ref value);

/* The lowest or highest value of a type as bits: -inf and inf for floats. */
uint64_t plan_lowest(int dtype);
uint64_t plan_highest(int dtype);

/* Reduces `src` into `dst` by repeating `kernel`; src is not empty. */
void plan_reduce_steps(struct plan_build *b, const char *kernel, struct plan_ref src,
                       struct plan_ref dst);

/* Prefix sums of any length. The workspace is made once and serves scans of up to `count`. */
#define PLAN_SCAN_LEVELS 8
struct plan_scan_space {
    struct plan_ref sums[PLAN_SCAN_LEVELS];
    struct plan_ref offsets[PLAN_SCAN_LEVELS]; /* prefix sums of `sums` */
    unsigned levels;
};
void plan_scan_space_make(struct plan_build *b, int dtype, uint64_t count,
                          struct plan_scan_space *ret_space);
void plan_scan_steps(struct plan_build *b, const struct plan_scan_space *space, bool inclusive,
                     struct plan_ref src, struct plan_ref dst);

#endif
