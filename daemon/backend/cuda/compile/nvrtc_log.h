/* Rewrites NVRTC's messages into the usual form "file:line:column: error: …". Pure. Thread: any. */
#ifndef BACKEND_CUDA_COMPILE_NVRTC_LOG_H
#define BACKEND_CUDA_COMPILE_NVRTC_LOG_H

#include "common/bytes.h"

/* Appends all of `raw`. Positions are rewritten, with the column taken from the caret's line.
 * `internal`, the program's name in NVRTC, is replaced by `file`. */
void nvrtc_log_rewrite(const char *raw, const char *internal, const char *file, struct capbuf *out);
/* The first line with an error; empty if there is none. */
struct bytes nvrtc_log_error(struct bytes log);

#endif
