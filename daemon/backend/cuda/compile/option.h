/*
 * The compiler options that users may give for their CUDA C. Only those of a list are allowed,
 * because others name files, run programs, or choose another architecture. Pure except for memory.
 * Thread: any.
 */
#ifndef BACKEND_CUDA_COMPILE_OPTION_H
#define BACKEND_CUDA_COMPILE_OPTION_H

#include <stdbool.h>

#include "common/err.h"

#define CUDA_OPTIONS_MAX     64u
#define CUDA_EXPRESSIONS_MAX 64u

enum cuda_tool {
    CUDA_TOOL_AUTO, /* NVRTC; nvcc if NVRTC refuses the source */
    CUDA_TOOL_NVRTC,
    CUDA_TOOL_NVCC,
};

struct cuda_options {
    char *text; /* owned; the arrays point into it */
    const char *option[CUDA_OPTIONS_MAX];
    unsigned option_count;
    /* "-DNAME=VALUE", "-DNAME" or "-UNAME", in the order given */
    const char *macro[CUDA_OPTIONS_MAX];
    unsigned macro_count;
    const char *expression[CUDA_EXPRESSIONS_MAX]; /* values of --name-expression= */
    unsigned expression_count;
    enum cuda_tool tool;    /* value of --compiler= */
    const char *nvrtc_only; /* a given option that nvcc does not know; NULL: none */
    const char *nvcc_only;  /* a given option that NVRTC does not know; NULL: none */
};

/* Reads "auto", "nvrtc" or "nvcc". Returns false for other text. */
bool cuda_tool_read(const char *text, enum cuda_tool *ret_tool);
/* Splits options at blanks, except between quotes and within the brackets of a name expression.
 * ERR_INVALID names the option and what is allowed. */
int cuda_options_read(const char *text, struct cuda_options *ret_options, struct err *e);
void cuda_options_finish(struct cuda_options *o);

#endif
