/*
 * The built-in modules as nvcc made them when gpud was built: code for several GPUs and PTX in
 * each. Empty where there was no nvcc. Static. Thread: any.
 */
#ifndef KERNELS_BUILTIN_FATBIN_H
#define KERNELS_BUILTIN_FATBIN_H

#include <stddef.h>

#include "common/bytes.h"
#include "common/hash.h"

struct builtin_fatbin {
    const char *name; /* of the module; NULL ends the table */
    const uint8_t *begin, *end;
    struct hash source; /* of the CUDA C it was made of */
};

extern const struct builtin_fatbin builtin_fatbins[];

/* What was made of exactly this text; empty if there is none. */
struct bytes builtin_fatbin_find(struct bytes cuda_source);

#endif
