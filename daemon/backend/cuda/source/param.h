/*
 * A kernel's parameter as its source or its mangled name spells it. Pure. Thread: any.
 */
#ifndef BACKEND_CUDA_SOURCE_PARAM_H
#define BACKEND_CUDA_SOURCE_PARAM_H

#include "daemon/backend/backend.h"
#include "daemon/backend/cuda/source/lex.h"

/* One type: what a pointer points to where `pointers` > 0. */
struct param_type {
    char name[64];     /* of the type without const and *, "" if unknown */
    int dtype;         /* enum dtype, DTYPE_NONE if it is none of them or unknown */
    uint32_t bytes;    /* 0 if unknown */
    unsigned pointers; /* levels */
    bool constant;     /* the innermost type is const */
    bool known;        /* false: a name that may stand for anything */
};

/* C's and CUDA's names of the element types ("unsigned int", "size_t", "__half"). */
bool param_builtin(const char *name, struct param_type *ret_type);
/* Fills kind, access, dtype, bytes and type; the name stays. kind 0: it may be an array or a value.
 */
void param_describe(const struct param_type *type, struct backend_compiled_arg *arg);
/* A parameter's tokens. false: not of a form that is understood. */
bool param_read(const struct lex_token *token, unsigned count,
                struct backend_compiled_arg *ret_arg);

#endif
