/* Learns types of a CUDA kernel's parameters that neither its entry's name nor its source shows. */
#ifndef BACKEND_CUDA_COMPILE_COMPILE_TYPES_H
#define BACKEND_CUDA_COMPILE_COMPILE_TYPES_H

#include "daemon/backend/cuda/compile/compile_job.h"

/* Whether there are such types. Kernels of C++ linkage have the types in their mangled names. Those
 * of extern "C" do not, and their sources may define names for types. */
bool compile_types_wanted(const struct image *image);
/* Appends the source and, behind it, an instance of an empty kernel for each kernel of that sort:
 * its mangled name has the kernel's type in it. false: no memory. */
bool compile_types_source(const struct image *image, struct bytes text, struct capbuf *out);
/* Takes the types from the compiled form of that source. */
void compile_types_take(const struct image *probed, struct image *image);

#endif
