/*
 * A module of CUDA's as gpud keeps it (wrapped.h): what is known of the kernels' parameters, then
 * the driver's bytes: cubin, fatbin or PTX. Pure.
 *
 * The parameters are two strings a kernel, with their NULs: its entry and a letter for each
 * parameter. The driver knows no more of a parameter than its size, so without them a number would
 * pass for an address.
 */
#ifndef BACKEND_CUDA_RUN_BINARY_H
#define BACKEND_CUDA_RUN_BINARY_H

#include "common/bytes.h"
#include "daemon/backend/backend.h"

#define CUDA_KIND_ANY    '?' /* not known: its size alone is checked */
#define CUDA_KIND_MEMORY 'm'
#define CUDA_KIND_VALUE  'v'

struct cuda_binary {
    struct bytes kinds;   /* the strings; may be empty */
    struct bytes payload; /* for the driver */
};

/* Fills ret->binary and ret->binary_size from the payload and from ret->kernels. */
int cuda_binary_wrap(const char *arch, struct bytes payload, struct backend_compiled *ret,
                     struct err *e);
/* Views into `binary`. ERR_INVALID where it is none, damaged, or of another architecture. */
int cuda_binary_unwrap(const char *arch, struct bytes binary, struct cuda_binary *ret_parts,
                       struct err *e);
/* Takes the next kernel off `kinds`: views into it; false at the end. */
bool cuda_binary_next(struct bytes *kinds, const char **ret_entry, const char **ret_letters);

#endif
