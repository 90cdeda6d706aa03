/*
 * Signatures of kernels in the portable dialect (docs/kernels.md describes the language):
 *
 *   //@kernel axpy<T: f32 f64>(T a, in T x[n], inout T y[n])  over n
 *   //@kernel sum<T: f32 f64>(in T x[n], out T part[groups])  over n  group 256  local T tile[256]
 *
 * Pure: no I/O, no clock; allocates only what its _finish frees. Thread: any.
 * Every quantity has a limit, because users write signatures.
 */
#ifndef KERNELS_SIGNATURE_H
#define KERNELS_SIGNATURE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/err.h"
#include "common/shape.h"

#define SIG_NAME   64
#define SIG_ARGS   24
#define SIG_TYPES  8
#define SIG_DIMS   8 /* named sizes of one kernel */
#define SIG_LOCALS 4
#define SIG_OVER   3
#define SIG_ORDERS 4

enum sig_kind { SIG_SCALAR = 1, SIG_ARRAY = 2 };

/* May an array that the kernel writes share memory with another argument? */
enum sig_alias {
    SIG_ALIAS_NONE, /* no */
    SIG_ALIAS_SAME, /* it may be exactly the memory of an argument that the kernel only reads */
    SIG_ALIAS_ANY,  /* in any way */
};

/* One extent: name * mul + add, or a constant (name index -1). SIG_GROUPS = number of groups. */
struct sig_extent {
    int dim; /* index into signature.dim, -1 constant, SIG_GROUPS */
    uint64_t mul;
    int64_t add;
};
#define SIG_GROUPS (-2)

struct sig_arg {
    char name[SIG_NAME];
    enum sig_kind kind;
    int access; /* enum access; arrays */
    int dtype;  /* enum dtype; DTYPE_NONE = the family's T */
    uint8_t ndim;
    struct sig_extent extent[SHAPE_MAX_DIMS]; /* arrays */
};

struct sig_local {
    char name[SIG_NAME];
    int dtype;      /* DTYPE_NONE = T */
    uint64_t count; /* elements */
};

/* A condition "low <= high" on two scalar arguments. */
struct sig_order {
    unsigned low, high; /* arguments of one type */
};

struct signature {
    char name[SIG_NAME]; /* without the type */
    int type[SIG_TYPES]; /* the family, dtypes; type_count 0: not generic */
    unsigned type_count;
    struct sig_arg arg[SIG_ARGS];
    unsigned arg_count;
    char dim[SIG_DIMS]
            [SIG_NAME]; /* named sizes in order of first use; passed after the arguments */
    unsigned dim_count;
    struct sig_extent
        over[SIG_OVER]; /* slowest first, as in the shape; empty: sizes are the user's */
    unsigned over_count;
    uint64_t group[SIG_OVER]; /* local size, same order as `over`; 0 = free */
    uint64_t per_item;        /* elements of the innermost extent for each work item (default 1) */
    struct sig_local local[SIG_LOCALS];
    unsigned local_count;
    enum sig_alias alias;
    struct sig_order order[SIG_ORDERS];
    unsigned order_count;
    bool guarded;   /* the prologue returns for items outside; only without barriers in the body */
    unsigned line;  /* of the signature in its source, from 1 */
    char text[512]; /* the line itself, without "//@kernel " */
};

/* Parses one line (with or without the leading "//@kernel"). ERR_COMPILE names column and reason.
 */
int signature_parse(struct bytes line, struct signature *ret_sig, struct err *e);

/* Writes the name of a family member's entry in compiled code: "axpy_f32"; the name itself if the
 * kernel is not generic. */
int signature_entry(const struct signature *s, int dtype, char *ret_entry, size_t size,
                    struct err *e);

/* An actual argument: the properties that a signature restricts. */
struct sig_value {
    bool array;
    int access;         /* declared by the caller; ACCESS_NONE = as the kernel declares */
    struct shape shape; /* arrays: type and extents */
    int dtype;          /* scalars */
    uint64_t bits;      /* scalars: value, little endian in the low bytes */
};

/* The parameters of a launch that are derived from the caller's arguments. */
struct sig_binding {
    int dtype;              /* the chosen T, DTYPE_NONE if not generic */
    uint64_t dim[SIG_DIMS]; /* values of the named sizes */
    uint64_t groups;        /* number of groups */
    /* Work items, x first, a multiple of local. All 0: nothing to do (an extent is 0); or, if the
     * signature has no `over`, the caller chooses them. */
    uint64_t global[3];
    uint64_t local[3];         /* all 0 = free */
    uint64_t scalar[SIG_ARGS]; /* scalars converted to the declared type, bits */
};

/*
 * Checks count, kinds, types, shapes and access of the actual arguments and derives the launch.
 * Access: a declared inout is always accepted; in and out must be the kernel's.
 * A scalar of another type is converted if its value is preserved exactly, or if a float becomes a
 * narrower float; otherwise ERR_RANGE. err.arg is the argument's index; texts name the argument:
 * "argument y: f32 1000, kernel needs n = 4096". A 1-dimensional array is accepted for any shape of
 * the same count if the named sizes are known from other arguments. A parameter of one dimension
 * accepts an array of any shape, by its count.
 */
int signature_bind(const struct signature *s, const struct sig_value *values, unsigned count,
                   struct sig_binding *ret_binding, struct err *e);

/* The memory of an actual array: two arrays of the same `memory` share the bytes in both ranges. */
struct sig_place {
    const void *memory; /* an identity, not dereferenced; NULL: shared with nothing */
    uint64_t begin, end;
};

/*
 * Checks that the arrays share memory only as the signature allows. `values` have passed
 * signature_bind; places[i] belongs to values[i]. Empty arrays share nothing, and arrays that are
 * only read may share. ERR_RANGE names both arguments; err.arg is the written one.
 */
int signature_alias(const struct signature *s, const struct sig_value *values,
                    const struct sig_place *places, struct err *e);

/* Converts a scalar's bits to another type. ERR_RANGE if the value does not fit, or would change
 * other than by rounding a float to f32; ERR_ARG_TYPE for unknown types. Texts do not name the
 * argument. */
int scalar_convert(int from, uint64_t bits, int to, uint64_t *ret_bits, struct err *e);

#endif
