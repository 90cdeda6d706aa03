/* A kernel's parameter, as its source or its mangled name spells it. Pure. Thread: any. */
#ifndef BACKEND_CUDA_SOURCE_PARAM_H
#define BACKEND_CUDA_SOURCE_PARAM_H

#include "daemon/backend/backend.h"
#include "daemon/backend/cuda/source/lex.h"

/* A type; if `pointers` > 0, the type that is pointed to. */
struct param_type {
    char name[64];     /* without const and *; "" if unknown */
    int dtype;         /* enum dtype; DTYPE_NONE if it is another type or unknown */
    uint32_t bytes;    /* 0 if unknown */
    unsigned pointers; /* levels of pointers */
    bool constant;     /* the innermost type is const */
    bool known;        /* false: the name may stand for anything */
};

/* Recognizes C's and CUDA's names of the element types ("unsigned int", "size_t", "__half"). */
bool param_builtin(const char *name, struct param_type *ret_type);
/* Fills in kind, access, dtype, bytes and type, but not the name. kind 0: it may be an array or
 * a value. */
void param_describe(const struct param_type *type, struct backend_compiled_arg *arg);
/* Reads a parameter from its tokens. Returns false if its form is not supported. */
bool param_read(const struct lex_token *token, unsigned count,
                struct backend_compiled_arg *ret_arg);

#endif
