/*
 * Plans of operations that take several launches. A caller names "reduce_sum", "scan", "sort" or
 * "fft" like any kernel; the plan lists the primitive kernels to run, and their temporaries. A
 * primitive kernel has a plan of one launch.
 *
 * Pure: no I/O, no clock, no allocation; the caller gives the storage. Thread: any.
 */
#ifndef KERNELS_PLAN_H
#define KERNELS_PLAN_H

#include "common/err.h"
#include "common/shape.h"
#include "kernels/signature.h"

#define PLAN_STEPS 256 /* launches of one operation */
#define PLAN_TEMPS 64

enum plan_ref_kind {
    PLAN_USER,   /* index = of the operation's argument; offset into it */
    PLAN_TEMP,   /* index = of the plan's temporary; offset into it */
    PLAN_SCALAR, /* dtype, bits */
};

struct plan_ref {
    enum plan_ref_kind kind;
    unsigned index;
    uint64_t offset;    /* bytes */
    struct shape shape; /* arrays: the shape that this launch sees */
    int dtype;          /* scalars */
    uint64_t bits;
};

enum plan_op { PLAN_LAUNCH, PLAN_COPY, PLAN_FILL };

struct plan_step {
    enum plan_op op;
    const char *kernel;            /* PLAN_LAUNCH: a primitive built-in kernel; static text */
    struct plan_ref arg[SIG_ARGS]; /* COPY: dst, src; FILL: dst, scalar */
    unsigned arg_count;
};

/* library: a library of the device's vendor may run the whole operation, by its name and with its
 * arguments. If it does, the first `after` steps run after it and the others do not. Otherwise only
 * the others run. */
struct plan {
    struct plan_step step[PLAN_STEPS];
    unsigned step_count;
    bool library;
    unsigned after;
    uint64_t temp[PLAN_TEMPS]; /* bytes */
    unsigned temp_count;
};

/* The signature of an operation ("reduce_sum(in T x[n], out T sum[1])"); NULL if the name is not an
 * operation's (it may be a primitive kernel's). Static storage. */
const struct signature *plan_signature(const char *operation);
unsigned plan_operation_count(void);
const char *plan_operation_name(unsigned index);

/* Can a vendor's library run this primitive kernel? */
bool plan_library(const char *kernel);

/* `values` have been checked by signature_bind against plan_signature(operation). */
int plan_make(const char *operation, const struct sig_value *values, unsigned count,
              const struct sig_binding *binding, struct plan *ret_plan, struct err *e);

#endif
