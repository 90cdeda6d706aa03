/*
 * Describes the kernels of a module: the image lists them with the sizes of their parameters;
 * mangled names and the source provide names and types. Pure. Thread: any.
 */
#ifndef BACKEND_CUDA_COMPILE_COMPILE_REPORT_H
#define BACKEND_CUDA_COMPILE_COMPILE_REPORT_H

#include "daemon/backend/cuda/image/image_kernels.h"
#include "daemon/backend/cuda/source/scan.h"

/* An instance of a template, with its name in the option and its name in the binary. */
struct report_alias {
    const char *name; /* "f<float>", as in the option */
    char entry[128];  /* "_Z1fIfEvPT_"; "": the kernel that has `name`, blanks ignored */
};

/* Completes image->kernels: the names of kernels, and names, types, kinds and access of
 * arguments. `scan` may be NULL. The log gets a note for each kernel that is renamed, and for
 * those left out. */
void report_complete(struct image *image, const struct scan *scan, const struct report_alias *alias,
                     unsigned alias_count, const char *file, struct capbuf *log);

#endif
