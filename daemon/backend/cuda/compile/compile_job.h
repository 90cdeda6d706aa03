/* Input and result of one compilation of CUDA C. */
#ifndef BACKEND_CUDA_COMPILE_COMPILE_JOB_H
#define BACKEND_CUDA_COMPILE_COMPILE_JOB_H

#include "daemon/backend/cuda/compile/compile_report.h"
#include "daemon/backend/cuda/compile/option.h"
#include "daemon/backend/cuda/image/image_kernels.h"

/* The input. */
struct compile_input {
    struct bytes text;
    const char *file; /* for messages; without quotes and backslashes */
    const struct image_arch *device;
    const struct cuda_options *options;
    const char *cache_dir;  /* may be NULL */
    const char *nvrtc_path; /* where to find NVRTC; "": the default search */
    bool confined;          /* Landlock limits the files that compilers read */
};

struct compile_output {
    struct image image;
    uint8_t *data; /* owned: cubin, fatbin or PTX */
    size_t size;
    int lang;           /* form of `data`: BACKEND_LANG_CUBIN or BACKEND_LANG_PTX */
    char compiler[512]; /* file of the compiler, to detect a new version; "": unknown */
    char tool[64];      /* name of the compiler, for the log */
    struct report_alias alias[CUDA_EXPRESSIONS_MAX];
    unsigned alias_count;
};

#endif
