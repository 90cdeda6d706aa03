/* The back ends of this build. CMakeLists.txt defines BACKEND_WITH_CUDA and BACKEND_WITH_OPENCL. */
#ifndef BACKEND_BUILT_H
#define BACKEND_BUILT_H

#include "daemon/backend/backend.h"

extern const struct backend backend_cuda;
extern const struct backend backend_opencl;
extern const struct backend backend_sim;

#endif
