/*
 * Translates the portable dialect to the languages of the back ends. A source contains kernels,
 * each a signature line followed by a body in braces, and helper functions between them. For each
 * member of each family, translation writes an entry point with a prologue that declares the
 * arguments, sizes and indices; the body only indexes arrays.
 *
 * docs/kernels.md lists the names a body may use. Between kernels `helper` begins a function,
 * `constant` a table; `global` and `local` qualify pointers.
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
    DIALECT_HOST, /* C functions for simulated devices and test doubles: see kernels/host.h */
};

#define DIALECT_KERNELS_MAX 64

/* All signatures of a source, in order. ret_sigs has room for max. ERR_COMPILE with
 * "file:line:col". */
int dialect_signatures(struct bytes source, const char *file, struct signature *ret_sigs,
                       unsigned max, unsigned *ret_count, struct err *e);

/* Translates a whole source. f64: the device supports it, so members of type f64 are included.
 * Writes #line directives, so that a compiler's messages name the user's file and line. */
int dialect_translate(struct bytes source, const char *file, enum dialect_target target, bool f64,
                      struct capbuf *out, struct err *e);

#endif
