/*
 * cuBLAS, cuFFT, cuRAND and CUB behind the names and signatures of the built-in operations. Each is
 * opened, by its functions alone, when a module comes whose kernels do what it does, and may be
 * absent; a first small call has it do what it leaves until then. What a library cannot do, or does
 * not know, is ERR_UNSUPPORTED: the portable kernels do it. What is left to the first call of its
 * kind (a plan of cuFFT's for a shape and a stream, a kernel that a library loads when it needs it)
 * blocks. Thread: the worker's, but for what prepares.
 */
#ifndef BACKEND_CUDA_LIBRARY_LIBRARY_H
#define BACKEND_CUDA_LIBRARY_LIBRARY_H

#include "daemon/backend/cuda/driver/device.h"

extern const struct backend_library_ops cuda_library_ops;
/* When a device is opened: what must not wait for a kernel later. The option "libraries" names
 * those that may serve, joined by '+'; without it all may. Sets d->stream_ends. */
int cuda_library_init(struct backend_device *d, const char *options, struct err *e);
/* What a device holds of libraries; it is idle, and nothing is being prepared. */
void cuda_library_close(struct backend_device *d);

#endif
