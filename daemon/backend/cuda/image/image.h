/*
 * Reads compiled CUDA code of users and of NVRTC: PTX, cubin (ELF), fatbin. It is untrusted input,
 * read completely before a driver gets it: all positions in headers must lie within the bytes.
 * Instructions are not checked. Pure except for memory. Thread: any.
 *
 * Errors: ERR_INVALID: damaged code, with the fault and its place; ERR_UNSUPPORTED: code of another
 * architecture, with both architectures; ERR_LIMIT.
 */
#ifndef BACKEND_CUDA_IMAGE_IMAGE_H
#define BACKEND_CUDA_IMAGE_IMAGE_H

#include "daemon/backend/cuda/image/image_kernels.h"

/* `lang` is BACKEND_LANG_PTX, or BACKEND_LANG_CUBIN for a cubin or a fatbin. */
int image_read(int lang, struct bytes data, const struct image_arch *device,
               struct image *ret_image, struct err *e);

#endif
