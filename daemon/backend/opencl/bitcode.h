/* Finds arguments that a kernel's code only reads, in the LLVM bitcode of a driver's binary. */
#ifndef BACKEND_OPENCL_BITCODE_H
#define BACKEND_OPENCL_BITCODE_H

#include "common/bytes.h"
#include "daemon/backend/backend.h"

/*
 * Sets `only_reads` of arrays. PoCL's binaries have the bitcode of their kernels, and PoCL has
 * loaded LLVM, which reads it. Every use of an argument is followed, into called functions too. A
 * use that is more than a load, or unknown, leaves `only_reads` unset; so do binaries of other
 * drivers, and a process without LLVM. Attributes in the bitcode do not count, since a source can
 * state them. Blocks for some milliseconds.
 */
void opencl_bitcode_learn(struct bytes binary, struct backend_compiled *compiled);

#endif
