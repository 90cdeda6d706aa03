/* The sources as the build embedded them; written by kernels_gen. */
#ifndef KERNELS_BUILTIN_TEXT_H
#define KERNELS_BUILTIN_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct builtin_text {
    const char *name; /* of the module */
    const uint8_t *data;
    size_t size;
};

extern const struct builtin_text builtin_texts[];
extern const unsigned builtin_text_count;

#endif
