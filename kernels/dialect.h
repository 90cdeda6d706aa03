/*
 * The portable dialect: one source, several languages. A source holds any number of kernels, each a
 * signature line followed by a body in braces, and helper functions between them. Translation
 * writes for each member of each family an entry point with a prologue; the body only indexes
 * arrays.
 *
 * Names the body may use, whatever the target: the arguments and named sizes; i, j, k (index in the
 * innermost, next, outermost extent of `over`); lid, gid, group_size, groups (innermost dimension)
 * and lid_y, gid_y …; T; barrier(); f32/f64/i32/u32/… as types; min, max, fabs, sqrt, exp, log,
 * sin, cos, pow, floor, ceil, fma, rsqrt; atomic_add(p, v), atomic_min, atomic_max on local or
 * global u32/i32; `local` arrays from the signature.
 *
 * Pure; allocates the output only. Thread: any.
 */
#ifndef KERNELS_DIALECT_H
#define KERNELS_DIALECT_H

#include "common/bytes.h"
#include "common/err.h"
#include "kernels/signature.h"

enum dialect_target {
    DIALECT_OPENCL,
    DIALECT_CUDA,
    DIALECT_HOST, /* C functions for simulated devices and doubles: see kernels/host.h */
};

#define DIALECT_KERNELS_MAX 64

/* All signatures of a source, in order. ret_sigs has room for max. ERR_COMPILE with
 * "file:line:col". */
int dialect_signatures(struct bytes source, const char *file, struct signature *ret_sigs,
                       unsigned max, unsigned *ret_count, struct err *e);

/* Translates a whole source. `f64`: members of type f64 are made too (the device can). Emits #line
 * directives so that a compiler's messages carry the user's file and line. */
int dialect_translate(struct bytes source, const char *file, enum dialect_target target, bool f64,
                      struct capbuf *out, struct err *e);

#endif
