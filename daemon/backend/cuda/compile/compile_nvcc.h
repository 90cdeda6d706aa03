/*
 * Compiles the device code of CUDA C with the toolkit's nvcc, which accepts whole programs. It
 * works in a folder of its own inside the working folder, which it removes afterwards. Blocks.
 * Thread: one.
 */
#ifndef BACKEND_CUDA_COMPILE_COMPILE_NVCC_H
#define BACKEND_CUDA_COMPILE_COMPILE_NVCC_H

#include "daemon/backend/cuda/compile/compile_job.h"

/* Fills in out->data, size, lang, alias, compiler and tool. Macros become lines before the text,
 * because nvcc passes options to a shell. ERR_COMPILE: the log has the compiler's messages.
 * ERR_COMPILE_LIMIT: a step of nvcc took too much time or memory. out->data is NULL on failure. */
int compile_nvcc(const struct compile_input *in, const char *nvcc, struct compile_output *out,
                 struct capbuf *log, struct err *e);

#endif
