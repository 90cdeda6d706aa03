#include "gpuctl/demo/pixels.h"

#include <stdlib.h>

#include <gpud/gpud.h>

int image_alloc(uint32_t width, uint32_t height, uint32_t channels, struct image *ret_image,
                struct ctl_err *e)
{
    if (width == 0 || height == 0 || width > IMAGE_SIDE_MAX || height > IMAGE_SIDE_MAX) {
        return ctl_err_set(e, GPUD_ERR_LIMIT, "an image of %u x %u; 1 to %u are possible", width,
                           height, IMAGE_SIDE_MAX);
    }
    uint8_t *pixels = malloc((size_t)width * height * channels);
    if (pixels == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "no memory for %u x %u pixels", width, height);
    }
    *ret_image = (struct image){width, height, channels, pixels};
    return 0;
}

void image_finish(struct image *image)
{
    free(image->pixels);
    *image = (struct image){0};
}
