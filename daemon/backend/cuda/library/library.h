/*
 * cuBLAS, cuFFT, cuRAND and CUB behind the names and signatures of the built-in operations. A
 * library may be absent. It is opened when a module with kernels that it can replace is loaded, and
 * a first small call makes it complete its own start.
 *
 * A call that a library cannot serve gives ERR_UNSUPPORTED, and the portable kernels serve it. The
 * first call of a kind blocks: cuFFT makes a plan for a shape and a stream, others load a kernel.
 * Thread: the worker's, except for `prepare`.
 */
#ifndef BACKEND_CUDA_LIBRARY_LIBRARY_H
#define BACKEND_CUDA_LIBRARY_LIBRARY_H

#include "daemon/backend/cuda/driver/device.h"

extern const struct backend_library_ops cuda_library_ops;
/* To be called when a device is opened, before kernels run. The option "libraries" lists the
 * libraries that may serve, joined by '+'; without it all may. Sets d->stream_ends. */
int cuda_library_init(struct backend_device *d, const char *options, struct err *e);
/* Frees the state of the libraries. The device must be idle, and no preparation may be running. */
void cuda_library_close(struct backend_device *d);

#endif
