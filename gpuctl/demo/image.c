#include "gpuctl/demo/image.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

#include <gpud/gpud.h>

#include "gpuctl/base/file.h"
#include "gpuctl/demo/image_jpeg.h"

#define FILE_MAX ((size_t)256 << 20) /* bytes of an image's file */

static int load_png(const struct file *file, struct image *ret_image, struct ctl_err *e)
{
    png_image png = {.version = PNG_IMAGE_VERSION};
    if (png_image_begin_read_from_memory(&png, file->data, file->size) == 0) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "%s", png.message);
    }
    png.format = PNG_FORMAT_RGB;
    struct image image;
    int rc = image_alloc(png.width, png.height, 3, &image, e);
    if (rc != 0) {
        png_image_free(&png);
        return rc;
    }
    static const png_color black = {0, 0, 0}; /* behind transparent pixels */
    if (png_image_finish_read(&png, &black, image.pixels, 0, NULL) == 0) {
        image_finish(&image);
        return ctl_err_set(e, GPUD_ERR_INVALID, "%s", png.message);
    }
    *ret_image = image;
    return 0;
}

int image_load(const char *path, struct image *ret_image, struct ctl_err *e)
{
    static const unsigned char png[4] = {0x89, 'P', 'N', 'G'};
    static const unsigned char jpeg[3] = {0xff, 0xd8, 0xff};
    struct file file;
    int rc = file_load(path, (struct file_limit){FILE_MAX, FILE_MAX}, &file, e);
    if (rc != 0) {
        return rc;
    }
    if (file.size > sizeof png && memcmp(file.data, png, sizeof png) == 0) {
        rc = load_png(&file, ret_image, e);
    } else if (file.size > sizeof jpeg && memcmp(file.data, jpeg, sizeof jpeg) == 0) {
        rc = image_load_jpeg(file.data, file.size, ret_image, e);
    } else {
        rc = ctl_err_set(e, GPUD_ERR_INVALID, "neither JPEG nor PNG");
    }
    file_finish(&file);
    return rc == 0 ? 0 : ctl_err_wrap(e, "%s", path);
}

int image_save_png(struct save *save, const struct image *image, struct ctl_err *e)
{
    png_image png = {
        .version = PNG_IMAGE_VERSION,
        .width = image->width,
        .height = image->height,
        .format = image->channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB,
    };
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
    void *data = malloc(size);
    if (data == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "%s: out of memory", save->path);
    }
    int rc;
    if (png_image_write_to_memory(&png, data, &size, 0, image->pixels, 0, NULL) == 0) {
        rc = ctl_err_set(e, GPUD_ERR_IO, "%s: %s", save->path, png.message);
    } else {
        const struct save_part part = {data, size};
        rc = save_commit(save, &part, 1, e);
    }
    free(data);
    return rc;
}
