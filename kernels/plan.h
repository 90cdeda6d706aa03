/*
 * Operations of several launches as pure functions from sizes to steps: a caller names
 * "reduce_sum", "scan", "sort" or "fft" like any kernel; the plan says which primitive kernels run
 * on which temporaries. A kernel that is no such operation has a plan of one launch.
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
    PLAN_USER,   /* index = the operation's argument; offset, size in bytes into it */
    PLAN_TEMP,   /* index = plan's temporary */
    PLAN_SCALAR, /* dtype, bits */
};

struct plan_ref {
    enum plan_ref_kind kind;
    unsigned index;
    uint64_t offset;    /* bytes */
    struct shape shape; /* arrays: how this launch sees it */
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

/* A library of the device's vendor may run the whole operation, called by its name and with its
 * arguments: then only the first `after` steps run, behind it; else only the others. */
struct plan {
    struct plan_step step[PLAN_STEPS];
    unsigned step_count;
    bool library;
    unsigned after;
    uint64_t temp[PLAN_TEMPS]; /* bytes */
    unsigned temp_count;
};

/* The signature by which an operation is called ("reduce_sum(in T x[n], out T sum[1])"), or NULL if
 * the name is none (then it may be a primitive kernel). Static storage. */
const struct signature *plan_signature(const char *operation);
unsigned plan_operation_count(void);
const char *plan_operation_name(unsigned index);

/* May a library run this primitive kernel as it is? */
bool plan_library(const char *kernel);

/* `values` have been checked by signature_bind against plan_signature(operation). */
int plan_make(const char *operation, const struct sig_value *values, unsigned count,
              const struct sig_binding *binding, struct plan *ret_plan, struct err *e);

#endif
