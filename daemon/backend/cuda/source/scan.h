/*
 * Scans the text of a CUDA C source for the files that it includes, and for the kernels that it
 * seems to define, with their parameters. The text is not preprocessed, so kernels are hints; the
 * check of files is exact. Pure except for memory. Thread: any.
 */
#ifndef BACKEND_CUDA_SOURCE_SCAN_H
#define BACKEND_CUDA_SOURCE_SCAN_H

#include "daemon/backend/backend.h"

#define SCAN_KERNELS_MAX 1024u /* further kernels are ignored */
#define SCAN_PARAMS_MAX  BACKEND_ARGS_MAX

struct scan_place {
    unsigned line, column; /* 0: unknown */
};

struct scan_kernel {
    char name[128];
    struct scan_place place;
    bool is_template;
    bool is_static;
    bool readable; /* all parameters were read */
    unsigned param_count;
    /* owned, param_count entries; kind 0: the type is unknown */
    struct backend_compiled_arg *param;
};

struct scan {
    struct scan_kernel *kernel; /* owned */
    unsigned kernel_count;
    unsigned globals; /* count of __global__ outside directives */
    bool includes;    /* it has an #include */
    bool defines;     /* it has a #define or #undef */
    bool cub;         /* it includes CUB, with nothing defined before */
};

/* ERR_COMPILE "file:line:column: error: …" if the source includes anything but <relative>
 * headers (of the toolkit) and "headers" of the toolkit or the C library. */
int scan_source(const char *text, const char *file, struct scan *ret_scan, struct err *e);
void scan_finish(struct scan *s);

/* The definition with that name; NULL: there is none, several differ, or it is not readable. */
const struct scan_kernel *scan_find(const struct scan *s, const char *name);

#endif
