/*
 * A precompiled header of CUB for kernels: NVRTC needs seconds to read CUB, and a fraction of a
 * second to load the precompiled header. There is one file for each version of NVRTC and each
 * architecture, of some 180 MiB, in a folder of the cache. Files of other versions are removed. A
 * file's checksum is verified before each use. Blocks (files, and a compilation if there is no file
 * yet). Thread: one.
 */
#ifndef BACKEND_CUDA_COMPILE_NVRTC_PCH_H
#define BACKEND_CUDA_COMPILE_NVRTC_PCH_H

#include <limits.h>
#include <stdbool.h>

#include "daemon/backend/cuda/compile/nvrtc.h"

/* Name and beginning of a program that uses the header. */
#define NVRTC_PCH_PROGRAM "gpud-source.cu"
#define NVRTC_PCH_PREFIX  "#include <cub/cub.cuh>\n#pragma nv_hdrstop\n"

struct nvrtc_pch {
    const char *cache_dir;      /* "" or NULL: no precompiled header */
    const char *const *options; /* the architecture first, as for the program itself */
    unsigned option_count;
};

/* Makes the option that loads the header, and the header if necessary. Returns false if there is
 * none. */
bool nvrtc_pch_obtain(const struct nvrtc *n, const struct nvrtc_pch *p, char ret_option[PATH_MAX]);

#endif
