/*
 * Describes a module's kernels: the image has their list and the sizes of their parameters, mangled
 * names and the source have names and types. Pure. Thread: any.
 */
#ifndef BACKEND_CUDA_COMPILE_COMPILE_REPORT_H
#define BACKEND_CUDA_COMPILE_COMPILE_REPORT_H

#include "daemon/backend/cuda/image/image_kernels.h"
#include "daemon/backend/cuda/source/scan.h"

/* An instance of a template: its name in the option and in the binary. */
struct report_alias {
    const char *name; /* "f<float>", as in the option */
    char entry[128];  /* "_Z1fIfEvPT_"; "": the kernel of that name, blanks ignored */
};

/* Completes image->kernels: names, and the arguments' names, types, kinds and access. `scan` may be
 * NULL. The log gets a line for each kernel or argument that remains unknown. */
void report_complete(struct image *image, const struct scan *scan, const struct report_alias *alias,
                     unsigned alias_count, const char *file, struct capbuf *log);

#endif
