/*
 * A precompiled header of CUB for kernels: NVRTC needs seconds to read CUB, and a fraction of one
 * to load the precompiled header. One file for each version of NVRTC and architecture, of some 180
 * MiB, in a folder of the cache; files of other versions are removed. Its checksum is verified
 * before each use. Blocks (files, and a compilation where there is none yet). Thread: one.
 */
#ifndef BACKEND_CUDA_COMPILE_NVRTC_PCH_H
#define BACKEND_CUDA_COMPILE_NVRTC_PCH_H

#include <limits.h>
#include <stdbool.h>

#include "daemon/backend/cuda/compile/nvrtc.h"

/* Name and begin of a program that uses it. */
#define NVRTC_PCH_PROGRAM "gpud-source.cu"
#define NVRTC_PCH_PREFIX  "#include <cub/cub.cuh>\n#pragma nv_hdrstop\n"

struct nvrtc_pch {
    const char *cache_dir;      /* "" or NULL: no precompiled header */
    const char *const *options; /* the architecture first, as for the program itself */
    unsigned option_count;
};

/* The option that loads it, in ret_option. false: there is none, and making one failed. */
bool nvrtc_pch_obtain(const struct nvrtc *n, const struct nvrtc_pch *p, char ret_option[PATH_MAX]);

#endif
