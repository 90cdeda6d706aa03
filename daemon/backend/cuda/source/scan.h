/*
 * Scans the text of a CUDA C source: the files that it includes, and the kernels that it seems to
 * define, with their parameters. The text is not preprocessed, so kernels are hints; the check of
 * files is exact. Pure except for memory. Thread: any.
 */
#ifndef BACKEND_CUDA_SOURCE_SCAN_H
#define BACKEND_CUDA_SOURCE_SCAN_H

#include "daemon/backend/backend.h"

#define SCAN_KERNELS_MAX 1024u /* later ones are ignored */
#define SCAN_PARAMS_MAX  BACKEND_ARGS_MAX

struct scan_place {
    unsigned line, column; /* 0: nowhere */
};

struct scan_kernel {
    char name[128];
    struct scan_place place;
    bool is_template;
    bool is_static;
    bool readable; /* params repeat the source word for word */
    unsigned param_count;
    struct backend_compiled_arg *param; /* owned, param_count; kind 0 where the type is not known */
};

struct scan {
    struct scan_kernel *kernel; /* owned */
    unsigned kernel_count;
    unsigned globals; /* count of __global__ outside of directives */
    bool includes;    /* there is an #include */
    bool defines;     /* there is a #define or #undef */
    bool cub;         /* CUB is included, with nothing defined before */
};

/* ERR_COMPILE "file:line:column: error: …" if the source includes other files than <relative>
 * headers (of the toolkit) and "headers" of the toolkit or the C library. */
int scan_source(const char *text, const char *file, struct scan *ret_scan, struct err *e);
void scan_finish(struct scan *s);

/* The definition of that name; NULL: none, or several that differ. */
const struct scan_kernel *scan_find(const struct scan *s, const char *name);

#endif
