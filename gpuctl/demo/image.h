/* Photographs in, PNG out. */
#ifndef GPUCTL_DEMO_IMAGE_H
#define GPUCTL_DEMO_IMAGE_H

#include "gpuctl/base/ctl_err.h"
#include "gpuctl/base/save.h"
#include "gpuctl/demo/pixels.h"

/* Reads a JPEG or PNG file as RGB, known by its content. May block. */
int image_load(const char *path, struct image *ret_image, struct ctl_err *e);
/* Writes a PNG, and ends `save`. */
int image_save_png(struct save *save, const struct image *image, struct ctl_err *e);

#endif
