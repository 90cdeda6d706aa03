/* Constants of a CUDA C source that a compiler can compute from others. Pure but for memory.
 * Thread: any. */
#ifndef BACKEND_CUDA_SOURCE_CONSTANT_H
#define BACKEND_CUDA_SOURCE_CONSTANT_H

#include "daemon/backend/cuda/source/item.h"

#define CONSTANT_COMPUTED "__fix" /* is to be a macro for "constexpr" */

/* Puts CONSTANT_COMPUTED for the "const" of each float or double that is kept and computed, into
 * `out`, a copy of the text that the items are of. false: no memory. */
bool constants_mark(const struct items *items, const char *text, char *out);

#endif
