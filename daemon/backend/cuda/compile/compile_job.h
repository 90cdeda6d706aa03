/* One compilation of CUDA C: what goes into a compiler, and what it gives. */
#ifndef BACKEND_CUDA_COMPILE_COMPILE_JOB_H
#define BACKEND_CUDA_COMPILE_COMPILE_JOB_H

#include "daemon/backend/cuda/compile/compile_report.h"
#include "daemon/backend/cuda/compile/option.h"
#include "daemon/backend/cuda/image/image_kernels.h"

/* What is to be compiled. */
struct compile_input {
    struct bytes text;
    const char *file; /* for messages; no quote, no backslash */
    const struct image_arch *device;
    const struct cuda_options *options;
    const char *cache_dir;  /* may be NULL */
    const char *nvrtc_path; /* "": where it is looked for by itself */
    bool confined;          /* the kernel keeps compilers from reading what is not theirs */
};

struct compile_output {
    struct image image;
    uint8_t *data; /* owned: cubin, fatbin or PTX */
    size_t size;
    int lang;           /* of data: BACKEND_LANG_CUBIN or BACKEND_LANG_PTX */
    char compiler[512]; /* its file; "": not one that may be replaced */
    char tool[64];      /* what compiled it, for the log */
    struct report_alias alias[CUDA_EXPRESSIONS_MAX];
    unsigned alias_count;
};

#endif
