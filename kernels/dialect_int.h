/* Shared by the dialect's files only. */
#ifndef KERNELS_DIALECT_INT_H
#define KERNELS_DIALECT_INT_H

#include "kernels/dialect.h"

/* Splits a source into pieces: a kernel's body, or the text between kernels. */
struct dialect_scan {
    struct bytes source;
    const char *file;
    size_t pos;
    unsigned line;   /* of pos, from 1 */
    unsigned column; /* of pos, from 1 */
};

struct dialect_piece {
    bool kernel;
    struct bytes text; /* kernels: the body with its braces */
    unsigned line;     /* where the text begins, from 1 */
    unsigned column;
    struct signature sig;
};

void dialect_scan_init(struct dialect_scan *scan, struct bytes source, const char *file);
/* Reads the next piece. *ret_end: there is none. */
int dialect_scan_next(struct dialect_scan *scan, struct dialect_piece *ret_piece, bool *ret_end,
                      struct err *e);

/* The differences between the languages. Texts are static. */
struct dialect_lang {
    const char *preamble;     /* types and functions */
    const char *preamble_f64; /* added if the device supports f64 */
    const char *enter;        /* before the user's text, on lines of its own */
    const char *leave;        /* after the user's text */
    const char *kernel;       /* before an entry: "__kernel void" */
    const char *array;        /* before an array's type: "__global " */
    const char *local;        /* before a local array: "__local " */
    const char *type[12];     /* by enum dtype */
    const char *infinity;     /* an expression of type f32 */
    /* formats of expressions, with the axis as a letter (x, y, z) or a number */
    const char *lid, *gid, *group_size, *groups;
    bool axis_letter;
};

const struct dialect_lang *dialect_lang(enum dialect_target target);

#endif
