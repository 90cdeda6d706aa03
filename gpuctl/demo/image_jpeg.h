/* The JPEG half of image.c. */
#ifndef GPUCTL_DEMO_IMAGE_JPEG_H
#define GPUCTL_DEMO_IMAGE_JPEG_H

#include <stddef.h>

#include "gpuctl/demo/pixels.h"

int image_load_jpeg(const void *data, size_t size, struct image *ret_image, struct ctl_err *e);

#endif
