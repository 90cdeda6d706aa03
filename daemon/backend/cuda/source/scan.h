/*
 * What the text of a CUDA C source says by itself: whether it reaches for files, which kernels it
 * seems to define and with which parameters, and where host code stands. Hints but for the files:
 * nothing is preprocessed. Pure but for memory. Thread: any.
 */
#ifndef BACKEND_CUDA_SOURCE_SCAN_H
#define BACKEND_CUDA_SOURCE_SCAN_H

#include "daemon/backend/backend.h"

#define SCAN_KERNELS_MAX 1024u /* more are not looked at */
#define SCAN_PARAMS_MAX  32u

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
    unsigned globals;          /* how often __global__ stands there outside of directives */
    bool includes;             /* there is an #include */
    bool defines;              /* there is a #define or #undef */
    bool asks;                 /* an #if asks, or may, for what nvcc brings to every source */
    bool values;               /* there is an #if or #elif: macros' values matter */
    bool cub;                  /* CUB is included, with nothing defined before */
    struct scan_place launch;  /* the first <<< */
    struct scan_place main;    /* the first main( */
    struct scan_place runtime; /* the first call of the host's runtime: cudaMalloc( … */
};

/* ERR_COMPILE "file:line:column: error: …" where the source includes what it may not: only
 * <relative> headers (the toolkit's) and "headers" of the toolkit or the C library. Between #if and
 * #endif, which may leave it out, such an #include becomes #error in `text`. */
int scan_source(char *text, const char *file, struct scan *ret_scan, struct err *e);
/* Does the option "-DNAME=VALUE" make an #if ask for what nvcc brings, or may it? */
bool scan_option_asks(const struct scan *s, const char *option);
void scan_finish(struct scan *s);

/* The one definition of that name; NULL if there is none or several differ. */
const struct scan_kernel *scan_find(const struct scan *s, const char *name);

#endif
