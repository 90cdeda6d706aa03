/* Finds arguments that a kernel only reads, from the LLVM bitcode in a driver's binary. */
#ifndef BACKEND_OPENCL_BITCODE_H
#define BACKEND_OPENCL_BITCODE_H

#include "common/bytes.h"
#include "daemon/backend/backend.h"

/*
 * Sets `only_reads` of arrays. PoCL's binaries contain the bitcode of their kernels, and PoCL has
 * loaded LLVM, which can read it. Every use of an argument is followed, also into called functions.
 * `only_reads` remains unset if a use is more than a load or is unknown, for binaries of other
 * drivers, and in a process without LLVM. Attributes in the bitcode do not count, because a source
 * can state them. Blocks for some milliseconds.
 */
void opencl_bitcode_learn(struct bytes binary, struct backend_compiled *compiled);

#endif
