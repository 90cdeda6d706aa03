/*
 * Headers that NVRTC has not: the C library's, of which device code needs a few types and limits,
 * and the runtime's where the toolkit's are not installed. Static texts. Thread: any.
 */
#ifndef BACKEND_CUDA_SOURCE_HEADER_H
#define BACKEND_CUDA_SOURCE_HEADER_H

#include <stdbool.h>

#include "common/bytes.h"

#define HEADERS_MAX 384u

/* May "name" be included: one of the texts here, or by its name the toolkit's? */
bool header_known(struct bytes name);

/* What nvcc brings to every source, and NVRTC does not: the limits and the constants of mathematics
 * that the runtime's header includes, and that "register" means nothing instead of being an error.
 * For a program's beginning, with headers_given. */
#define HEADER_NVCC                                                                                \
    "#include <features.h>\n#include <limits.h>\n#include <math.h>\n#include "                     \
    "<stddef.h>\n#include <stdint.h>\n"                                                            \
    "#include <sys/types.h>\n#define register\n"

/* Is it a macro that HEADER_NVCC brings? A source that asks for one chooses otherwise without. */
bool header_implied(struct bytes name);

/* What of the C++ library the toolkit has for devices, whatever a source includes of it: its
 * headers include each other on hosts. It takes a second; for a source that misses some of it. */
#define HEADER_LIBRARY                                                                             \
    "#include <limits>\n#include <type_traits>\n#include <utility>\n"                              \
    "#if __has_include(<cuda/std/__algorithm/min.h>)\n#include <cuda/std/__algorithm/min.h>\n"     \
    "#include <cuda/std/__algorithm/max.h>\n#endif\n"

/* The texts to be given to the compiler, as parallel arrays. `toolkit`: its headers are installed,
 * so none is given that it has, but what leads to its own where hosts know them by other names.
 * Returns how many. */
unsigned headers_given(bool toolkit, const char *ret_name[HEADERS_MAX],
                       const char *ret_text[HEADERS_MAX]);

#endif
