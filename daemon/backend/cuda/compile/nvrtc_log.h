/*
 * Rewrites NVRTC's messages in the usual form: "file:line:column: error: …". Pure. Thread: any.
 */
#ifndef BACKEND_CUDA_COMPILE_NVRTC_LOG_H
#define BACKEND_CUDA_COMPILE_NVRTC_LOG_H

#include "common/bytes.h"

/* Appends all of `raw`: positions rewritten, with the column from the line of the caret; `internal`
 * (the program's name as NVRTC knows it) replaced by `file`. */
void nvrtc_log_rewrite(const char *raw, const char *internal, const char *file, struct capbuf *out);
/* The first line with an error; empty: none. */
struct bytes nvrtc_log_error(struct bytes log);

#endif
