/*
 * Headers that NVRTC lacks: of the C library, of which device code needs a few types and limits,
 * and of the runtime where the toolkit's headers are not installed. Static texts. Thread: any.
 */
#ifndef BACKEND_CUDA_SOURCE_HEADER_H
#define BACKEND_CUDA_SOURCE_HEADER_H

#include <stdbool.h>

#include "common/bytes.h"

#define HEADERS_MAX 64u

/* Whether "name" may be included: one of these texts, or by its name a header of the toolkit. */
bool header_known(struct bytes name);

/* The texts to be given to the compiler, as parallel arrays. `toolkit`: its headers are installed,
 * so none is given that it has, but what leads to its own where hosts know them by other names.
 * Returns how many. */
unsigned headers_given(bool toolkit, const char *ret_name[HEADERS_MAX],
                       const char *ret_text[HEADERS_MAX]);

#endif
