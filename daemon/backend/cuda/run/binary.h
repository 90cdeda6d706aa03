/*
 * A CUDA module as gpud keeps it (wrapped.h): the kernels' parameters, then the bytes for the
 * driver: cubin, fatbin or PTX. Pure.
 *
 * The parameters are two strings a kernel, with their NULs: its entry and a letter for each
 * parameter. The driver knows only the size of a parameter, so without them a number could pass for
 * an address.
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

/* Fills ret->binary and ret->binary_size from the payload and from ret->kernels. */
int cuda_binary_wrap(const char *arch, struct bytes payload, struct backend_compiled *ret,
                     struct err *e);
/* Views into `binary`. ERR_INVALID: no such binary, damaged, or of another architecture. */
int cuda_binary_unwrap(const char *arch, struct bytes binary, struct cuda_binary *ret_parts,
                       struct err *e);
/* Takes the next kernel off `kinds`: views into it; false at the end. */
bool cuda_binary_next(struct bytes *kinds, const char **ret_entry, const char **ret_letters);

#endif
