/* CUDA C through NVRTC; what cuda_compile does with source. Blocks. Thread: one. */
#ifndef BACKEND_CUDA_COMPILE_CUDA_H
#define BACKEND_CUDA_COMPILE_CUDA_H

#include "daemon/backend/cuda/image.h"

struct compile_output {
    struct image image;
    uint8_t *data; /* owned: cubin, fatbin or PTX */
    size_t size;
    char compiler[512]; /* NVRTC's file */
};

/* On ERR_COMPILE the log is complete; the output is untouched on failure. */
int compile_cuda(const struct backend_source *source, const char *file,
                 const struct image_arch *device, struct compile_output *ret_output,
                 struct capbuf *log, struct err *e);

#endif
