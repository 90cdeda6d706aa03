/*
 * Options that users give for their CUDA C: only those of a list, since others name files or
 * another architecture than the device's. Pure but for memory. Thread: any.
 */
#ifndef BACKEND_CUDA_NVRTC_OPTION_H
#define BACKEND_CUDA_NVRTC_OPTION_H

#include <stdbool.h>

#include "common/err.h"

#define NVRTC_OPTIONS_MAX     64u
#define NVRTC_EXPRESSIONS_MAX 64u

struct nvrtc_options {
    char *text; /* owned: what the arrays point into */
    const char *option[NVRTC_OPTIONS_MAX];
    unsigned option_count;
    const char *expression[NVRTC_EXPRESSIONS_MAX]; /* of --name-expression= */
    unsigned expression_count;
    bool default_device; /* what says nothing of itself is the device's */
};

/* Words are separated by blanks; those between quotes or the brackets of a name expression belong
 * to the word. ERR_INVALID naming the option and what is allowed. */
int nvrtc_options_read(const char *text, struct nvrtc_options *ret_options, struct err *e);
void nvrtc_options_finish(struct nvrtc_options *o);

#endif
