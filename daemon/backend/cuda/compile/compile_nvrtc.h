/* Compiles CUDA C with NVRTC, in this process. Blocks. Thread: one. */
#ifndef BACKEND_CUDA_COMPILE_COMPILE_NVRTC_H
#define BACKEND_CUDA_COMPILE_COMPILE_NVRTC_H

#include "daemon/backend/cuda/compile/compile_job.h"

/* Fills in out->data, size, lang, alias, compiler and tool; and `scan`, which the caller
 * finishes. The text goes to NVRTC normalized (lex.h); a source that includes files other than
 * known headers is refused. ERR_COMPILE: the log has the compiler's messages. ERR_UNSUPPORTED:
 * there is no NVRTC, or it does not know the device. out->data is NULL on failure. */
int compile_nvrtc(const struct compile_input *in, struct scan *scan, struct compile_output *out,
                  struct capbuf *log, struct err *e);

#endif
