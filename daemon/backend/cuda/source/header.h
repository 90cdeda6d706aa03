/*
 * Headers that NVRTC lacks: those of the C library, of which device code needs a few types and
 * limits, and those of the runtime if the toolkit's headers are not installed. Static texts.
 * Thread: any.
 */
#ifndef BACKEND_CUDA_SOURCE_HEADER_H
#define BACKEND_CUDA_SOURCE_HEADER_H

#include <stdbool.h>

#include "common/bytes.h"

#define HEADERS_MAX 64u

/* May "name" be included? It is one of these texts, or its name is that of a header of the
 * toolkit. */
bool header_known(struct bytes name);

/* Gets the texts to give to the compiler, as parallel arrays, and returns their number. toolkit:
 * its headers are installed. Then no header is given that the toolkit has, except those that
 * lead to its own headers under the names that hosts use. */
unsigned headers_given(bool toolkit, const char *ret_name[HEADERS_MAX],
                       const char *ret_text[HEADERS_MAX]);

#endif
