/*
 * Options of users for their CUDA C: only those of a list are allowed, since others name files, run
 * programs, or name another architecture. Pure except for memory. Thread: any.
 */
#ifndef BACKEND_CUDA_COMPILE_OPTION_H
#define BACKEND_CUDA_COMPILE_OPTION_H

#include <stdbool.h>

#include "common/err.h"

#define CUDA_OPTIONS_MAX     64u
#define CUDA_EXPRESSIONS_MAX 64u

enum cuda_tool {
    CUDA_TOOL_AUTO, /* NVRTC, and nvcc where NVRTC refuses the source */
    CUDA_TOOL_NVRTC,
    CUDA_TOOL_NVCC,
};

struct cuda_options {
    char *text; /* owned; the arrays point into it */
    const char *option[CUDA_OPTIONS_MAX];
    unsigned option_count;
    const char *macro[CUDA_OPTIONS_MAX]; /* "-DNAME=VALUE", "-DNAME", "-UNAME", in their order */
    unsigned macro_count;
    const char *expression[CUDA_EXPRESSIONS_MAX]; /* of --name-expression= */
    unsigned expression_count;
    enum cuda_tool tool;    /* of --compiler= */
    const char *nvrtc_only; /* an option given that nvcc does not know; NULL: none */
    const char *nvcc_only;  /* an option given that NVRTC does not know; NULL: none */
};

/* "auto", "nvrtc" or "nvcc"; false: none of them. */
bool cuda_tool_read(const char *text, enum cuda_tool *ret_tool);
/* Words are separated by blanks; those between quotes or the brackets of a name expression belong
 * to the word. ERR_INVALID naming the option and what is allowed. */
int cuda_options_read(const char *text, struct cuda_options *ret_options, struct err *e);
void cuda_options_finish(struct cuda_options *o);

#endif
