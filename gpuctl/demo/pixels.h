/* An image in memory: 8 bits a channel, rows from the top, no padding. */
#ifndef GPUCTL_DEMO_PIXELS_H
#define GPUCTL_DEMO_PIXELS_H

#include <stdint.h>

#include "gpuctl/base/ctl_err.h"

#define IMAGE_SIDE_MAX 16384u /* pixels */

struct image {
    uint32_t width;
    uint32_t height;
    uint32_t channels; /* 3: red, green, blue; 1: gray */
    uint8_t *pixels;   /* owned */
};

/* Checks the size and makes room. */
int image_alloc(uint32_t width, uint32_t height, uint32_t channels, struct image *ret_image,
                struct ctl_err *e);
void image_finish(struct image *image);

#endif
