/*
 * Headers that NVRTC has not: the C library's, of which device code needs a few types and limits,
 * and the runtime's where the toolkit's are not installed. Static texts. Thread: any.
 */
#ifndef BACKEND_CUDA_SOURCE_HEADER_H
#define BACKEND_CUDA_SOURCE_HEADER_H

#include <stdbool.h>

#include "common/bytes.h"

#define HEADERS_MAX 64u

/* May "name" be included: one of the texts here, or by its name the toolkit's? */
bool header_known(struct bytes name);

/* The texts to be given to the compiler, as parallel arrays. `toolkit`: its headers are installed,
 * so none is given that it has, but what leads to its own where hosts know them by other names.
 * Returns how many. */
unsigned headers_given(bool toolkit, const char *ret_name[HEADERS_MAX],
                       const char *ret_text[HEADERS_MAX]);

#endif
