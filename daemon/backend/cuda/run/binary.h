/*
 * A CUDA module as gpud keeps it (wrapped.h): the parameters of its kernels, then the bytes for the
 * driver: cubin, fatbin or PTX. Pure.
 *
 * Each kernel has two NUL-terminated strings: its entry, and a letter for each parameter. The
 * driver knows only the size of a parameter, so without the letters a number could pass for an
 * address.
 */
#ifndef BACKEND_CUDA_RUN_BINARY_H
#define BACKEND_CUDA_RUN_BINARY_H

#include "common/bytes.h"
#include "daemon/backend/backend.h"

#define CUDA_KIND_ANY    '?' /* unknown: only its size is checked */
#define CUDA_KIND_MEMORY 'm'
#define CUDA_KIND_VALUE  'v'

struct cuda_binary {
    struct bytes kinds;   /* the strings; may be empty */
    struct bytes payload; /* for the driver */
};

/* Fills in ret->binary and ret->binary_size from the payload and ret->kernels. */
int cuda_binary_wrap(const char *arch, struct bytes payload, struct backend_compiled *ret,
                     struct err *e);
/* *ret_parts points into `binary`. ERR_INVALID: it is not such a binary, damaged, or for another
 * architecture. */
int cuda_binary_unwrap(const char *arch, struct bytes binary, struct cuda_binary *ret_parts,
                       struct err *e);
/* Takes the next kernel from `kinds`; the results point into it. Returns false at the end. */
bool cuda_binary_next(struct bytes *kinds, const char **ret_entry, const char **ret_letters);

#endif
