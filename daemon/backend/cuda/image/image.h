/*
 * Compiled CUDA code as users bring it and as NVRTC makes it: PTX, cubin (ELF), fatbin. It is read
 * as untrusted input, whole, before a driver sees it: what the headers say must lie within the
 * bytes. What the instructions do is not looked at. Pure but for memory. Thread: any.
 *
 * Errors: ERR_INVALID for what is damaged, with what is wrong and where; ERR_UNSUPPORTED for code
 * of another architecture, with what is there and what the device is; ERR_LIMIT.
 */
#ifndef BACKEND_CUDA_IMAGE_IMAGE_H
#define BACKEND_CUDA_IMAGE_IMAGE_H

#include "daemon/backend/cuda/image/image_kernels.h"

/* `lang` is BACKEND_LANG_PTX, or BACKEND_LANG_CUBIN for a cubin or a fatbin. */
int image_read(int lang, struct bytes data, const struct image_arch *device,
               struct image *ret_image, struct err *e);

#endif
