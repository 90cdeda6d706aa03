/*
 * A precompiled header of CUB for kernels: reading CUB takes NVRTC seconds, taking it in ready a
 * fraction of one. One file for each version of NVRTC and architecture, of some 180 MiB, in a
 * folder of the cache; files of other versions are removed. It is used only after its checksum was
 * verified. Blocks (files, and a compilation where there is none yet). Thread: one.
 */
#ifndef BACKEND_CUDA_COMPILE_NVRTC_PCH_H
#define BACKEND_CUDA_COMPILE_NVRTC_PCH_H

#include <limits.h>
#include <stdbool.h>

#include "daemon/backend/cuda/compile/nvrtc.h"

/* What a program that uses it is called and begins with. */
#define NVRTC_PCH_PROGRAM "gpud-source.cu"
#define NVRTC_PCH_PREFIX  "#include <cub/cub.cuh>\n#pragma nv_hdrstop\n"

struct nvrtc_pch {
    const char *cache_dir;      /* "" or NULL: none is used */
    const char *const *options; /* the architecture first, as for the program itself */
    unsigned option_count;
};

/* The option that makes use of it, in ret_option. false: there is none and none could be made. */
bool nvrtc_pch_obtain(const struct nvrtc *n, const struct nvrtc_pch *p, char ret_option[PATH_MAX]);

#endif
