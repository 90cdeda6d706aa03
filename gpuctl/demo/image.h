/* Photographs in, PNG out. 8 bits a channel, rows from the top, no padding. */
#ifndef GPUCTL_DEMO_IMAGE_H
#define GPUCTL_DEMO_IMAGE_H

#include <stdint.h>

#include "gpuctl/base/ctl_err.h"
#include "gpuctl/base/save.h"

#define IMAGE_SIDE_MAX 16384u /* pixels */

struct image {
    uint32_t width;
    uint32_t height;
    uint32_t channels; /* 3: red, green, blue; 1: gray */
    uint8_t *pixels;   /* owned */
};

/* Reads a JPEG or PNG file as RGB, known by its content. May block. */
int image_load(const char *path, struct image *ret_image, struct ctl_err *e);
/* Writes a PNG, and ends `save`. */
int image_save_png(struct save *save, const struct image *image, struct ctl_err *e);
void image_finish(struct image *image);

#endif
