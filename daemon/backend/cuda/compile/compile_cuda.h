/* Compiles CUDA C with NVRTC or nvcc. Used by cuda_compile. Blocks. Thread: one. */
#ifndef BACKEND_CUDA_COMPILE_COMPILE_CUDA_H
#define BACKEND_CUDA_COMPILE_COMPILE_CUDA_H

#include "daemon/backend/cuda/compile/compile_job.h"

/* On ERR_COMPILE the log is complete. The output is unchanged on failure. */
int compile_cuda(const struct backend_source *source, const char *file,
                 const struct image_arch *device, struct compile_output *ret_output,
                 struct capbuf *log, struct err *e);

#endif
