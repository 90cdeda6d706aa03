/*
 * What the functions of a CUDA C source declare: parameters and variables of their bodies, by their
 * tokens alone. Pure but for memory. Thread: any.
 */
#ifndef BACKEND_CUDA_SOURCE_LOCAL_H
#define BACKEND_CUDA_SOURCE_LOCAL_H

#include "daemon/backend/cuda/source/item.h"

/* "static const float *a[4] = …": its type is "const float", "*" and "[4]". Tokens of the code. */
struct local {
    const struct lex_token *name;
    struct item_range base, pointers, extents, value;
    bool constant; /* its value never changes */
};

struct locals {
    struct local *list; /* owned; in the source's order */
    size_t count, capacity;
};

/* Add to *s what is declared between a function's parentheses, or between its braces. false: no
 * memory, or too many. */
bool locals_read_parameters(const struct lex_token *t, struct item_range where, struct locals *s);
bool locals_read_body(const struct lex_token *t, struct item_range where, struct locals *s);
void locals_finish(struct locals *s);

/* The one of that name; NULL: there is none, or several of different types, or `by_value` of
 * different values (then *ret_known is set all the same). */
const struct local *locals_find(const struct locals *s, const struct lex_token *t,
                                const struct lex_token *name, bool by_value, bool *ret_known);

#endif
