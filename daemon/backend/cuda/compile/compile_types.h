/* Learns types of a kernel's parameters that neither the kernel's mangled name nor its source
 * shows. */
#ifndef BACKEND_CUDA_COMPILE_COMPILE_TYPES_H
#define BACKEND_CUDA_COMPILE_COMPILE_TYPES_H

#include "daemon/backend/cuda/compile/compile_job.h"

/* Are there such types? Kernels of C++ linkage have the types in their mangled names. Those of
 * extern "C" do not, and their sources may define names for types. */
bool compile_types_wanted(const struct image *image);
/* Appends the source and an instance of an empty kernel for each such kernel: the mangled name
 * of the instance contains the kernel's type. Returns false without memory. */
bool compile_types_source(const struct image *image, struct bytes text, struct capbuf *out);
/* Takes the types from the compiled form of that source. */
void compile_types_take(const struct image *probed, struct image *image);

#endif
