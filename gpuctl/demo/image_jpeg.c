#include "gpuctl/demo/image_jpeg.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <gpud/gpud.h>

/* libjpeg ends the process on an error unless its handler jumps away. */
struct decoder {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf away;
    char text[JMSG_LENGTH_MAX];
    struct image image;
};

static void on_error(j_common_ptr common)
{
    struct decoder *d = common->client_data;
    common->err->format_message(common, d->text);
    longjmp(d->away, 1);
}

static void on_warning(j_common_ptr common, int level)
{
    (void)common;
    (void)level;
}

static int decode(struct decoder *d, const void *data, size_t size, struct ctl_err *e)
{
    jpeg_create_decompress(&d->jpeg);
    jpeg_mem_src(&d->jpeg, data, (unsigned long)size);
    jpeg_read_header(&d->jpeg, TRUE);
    d->jpeg.out_color_space = JCS_RGB;
    jpeg_start_decompress(&d->jpeg);
    int rc = image_alloc(d->jpeg.output_width, d->jpeg.output_height, 3, &d->image, e);
    if (rc != 0) {
        return rc;
    }
    while (d->jpeg.output_scanline < d->jpeg.output_height) {
        JSAMPROW row = d->image.pixels + (size_t)d->jpeg.output_scanline * d->image.width * 3;
        jpeg_read_scanlines(&d->jpeg, &row, 1);
    }
    jpeg_finish_decompress(&d->jpeg);
    return 0;
}

int image_load_jpeg(const void *data, size_t size, struct image *ret_image, struct ctl_err *e)
{
    struct decoder d;
    memset(&d, 0, sizeof d);
    d.jpeg.err = jpeg_std_error(&d.errors);
    d.errors.error_exit = on_error;
    d.errors.emit_message = on_warning;
    d.jpeg.client_data = &d;
    int rc;
    if (setjmp(d.away) == 0) {
        rc = decode(&d, data, size, e);
    } else {
        rc = ctl_err_set(e, GPUD_ERR_INVALID, "%s", d.text);
    }
    jpeg_destroy_decompress(&d.jpeg);
    if (rc != 0) {
        image_finish(&d.image);
        return rc;
    }
    *ret_image = d.image;
    return 0;
}
