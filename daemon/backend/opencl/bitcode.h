/* Which arguments a kernel's code only reads, from the LLVM bitcode in a driver's binary. */
#ifndef BACKEND_OPENCL_BITCODE_H
#define BACKEND_OPENCL_BITCODE_H

#include "common/bytes.h"
#include "daemon/backend/backend.h"

/*
 * Sets `only_reads` of arrays. PoCL's binaries hold the bitcode that its kernels are made of, and
 * PoCL has LLVM loaded, which reads it: every use of an argument is followed, into called functions
 * too. One that is more than a load, or that is not understood, leaves the argument as it was. So
 * do binaries of other drivers, and a process without LLVM. Attributes in the bitcode are not
 * believed: a source can state them. Blocks for some milliseconds.
 */
void opencl_bitcode_learn(struct bytes binary, struct backend_compiled *compiled);

#endif
