/* CUDA C, through NVRTC or nvcc; what cuda_compile does with source. Blocks. Thread: one. */
#ifndef BACKEND_CUDA_COMPILE_COMPILE_CUDA_H
#define BACKEND_CUDA_COMPILE_COMPILE_CUDA_H

#include "daemon/backend/cuda/compile/compile_report.h"
#include "daemon/backend/cuda/compile/option.h"
#include "daemon/backend/cuda/image/image.h"

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

/* On ERR_COMPILE the log is complete; the output is untouched on failure. */
int compile_cuda(const struct backend_source *source, const char *file,
                 const struct image_arch *device, struct compile_output *ret_output,
                 struct capbuf *log, struct err *e);

/* For the compilers' use: the log with a hint behind it, and the first error of it as ERR_COMPILE,
 * which is returned. */
int compile_failed(const char *file, struct capbuf *log, struct err *e);

#endif
