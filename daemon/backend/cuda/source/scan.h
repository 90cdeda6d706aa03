/*
 * What the text of a CUDA C source says by itself: whether it reaches for files, and which kernels
 * it seems to define, with which parameters. Hints but for the files: nothing is preprocessed. Pure
 * but for memory. Thread: any.
 */
#ifndef BACKEND_CUDA_SOURCE_SCAN_H
#define BACKEND_CUDA_SOURCE_SCAN_H

#include "daemon/backend/backend.h"

#define SCAN_KERNELS_MAX 1024u /* more are not looked at */
#define SCAN_PARAMS_MAX  BACKEND_ARGS_MAX

struct scan_place {
    unsigned line, column; /* 0: nowhere */
};

struct scan_kernel {
    char name[128];
    struct scan_place place;
    bool is_template;
    bool is_static;
    bool readable; /* params are what the source says, word for word */
    unsigned param_count;
    struct backend_compiled_arg *param; /* owned, param_count; kind 0 where the type is not known */
};

struct scan {
    struct scan_kernel *kernel; /* owned */
    unsigned kernel_count;
    unsigned globals; /* how often __global__ stands there outside of directives */
    bool includes;    /* there is an #include */
    bool defines;     /* there is a #define or #undef */
    bool cub;         /* CUB is included, with nothing defined before */
};

/* ERR_COMPILE "file:line:column: error: …" where the source includes what it may not: only
 * <relative> headers (the toolkit's) and "headers" of the toolkit or the C library. */
int scan_source(const char *text, const char *file, struct scan *ret_scan, struct err *e);
void scan_finish(struct scan *s);

/* The one definition of that name; NULL if there is none or several differ. */
const struct scan_kernel *scan_find(const struct scan *s, const char *name);

#endif
