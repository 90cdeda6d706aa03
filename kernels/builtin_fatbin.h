/*
 * The built-in modules, compiled by nvcc when gpud was built. Each contains code for several GPUs,
 * and PTX. The table is empty if the build had no nvcc. Static. Thread: any.
 */
#ifndef KERNELS_BUILTIN_FATBIN_H
#define KERNELS_BUILTIN_FATBIN_H

#include <stddef.h>

#include "common/bytes.h"
#include "common/hash.h"

struct builtin_fatbin {
    const char *name; /* of the module; NULL ends the table */
    const uint8_t *begin, *end;
    struct hash source; /* hash of the CUDA C that nvcc compiled */
};

extern const struct builtin_fatbin builtin_fatbins[];

/* The fatbin of exactly this text; empty if there is none. */
struct bytes builtin_fatbin_find(struct bytes cuda_source);

#endif
