/*
 * What is told of a module's kernels: the image says which there are and how large their parameters
 * are, the mangled names and the source what they are called and what they mean. Pure. Thread: any.
 */
#ifndef BACKEND_CUDA_COMPILE_COMPILE_REPORT_H
#define BACKEND_CUDA_COMPILE_COMPILE_REPORT_H

#include "daemon/backend/cuda/image/image_kernels.h"
#include "daemon/backend/cuda/source/scan.h"

/* How users asked for instances of templates and what the compiler calls them. */
struct report_alias {
    const char *name; /* "f<float>", as in the option */
    char entry[128];  /* "_Z1fIfEvPT_"; "": the one of that name, but for blanks */
};

/* Completes image->kernels: names, and the arguments' names, types, kinds and access. `scan` may be
 * NULL. What it could not do is said in the log, a line each. */
void report_complete(struct image *image, const struct scan *scan, const struct report_alias *alias,
                     unsigned alias_count, const char *file, struct capbuf *log);

#endif
