/* The JPEG half of image.c. */
#ifndef GPUCTL_DEMO_IMAGE_JPEG_H
#define GPUCTL_DEMO_IMAGE_JPEG_H

#include <stddef.h>

#include "gpuctl/demo/image.h"

int image_load_jpeg(const void *data, size_t size, struct image *ret_image, struct ctl_err *e);
/* Checks the size and makes room. */
int image_alloc(uint32_t width, uint32_t height, uint32_t channels, struct image *ret_image,
                struct ctl_err *e);

#endif
