/* Reports a source that a compiler refused. */
#ifndef BACKEND_CUDA_COMPILE_COMPILE_FAILED_H
#define BACKEND_CUDA_COMPILE_COMPILE_FAILED_H

#include "common/bytes.h"
#include "common/err.h"

/* Appends a hint to the log if one applies. Sets `e` to the log's first error and returns
 * ERR_COMPILE. */
int compile_failed(const char *file, struct capbuf *log, struct err *e);

#endif
