/* How a compilation that a compiler refused is reported. */
#ifndef BACKEND_CUDA_COMPILE_COMPILE_FAILED_H
#define BACKEND_CUDA_COMPILE_COMPILE_FAILED_H

#include "common/bytes.h"
#include "common/err.h"

/* Appends a hint to the log where one fits. The log's first error becomes `e`: ERR_COMPILE, which
 * is returned. */
int compile_failed(const char *file, struct capbuf *log, struct err *e);

#endif
