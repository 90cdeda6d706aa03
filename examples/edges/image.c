#include "edges/image.h"

#include <errno.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#define TEXT_MAX 256 /* bytes of a failure's reason */

static char reason[TEXT_MAX];

bool image_alloc(uint32_t width, uint32_t height, uint32_t channels, struct image *ret_image)
{
    if (width == 0 || height == 0 || width > IMAGE_SIDE_MAX || height > IMAGE_SIDE_MAX) {
        return false;
    }
    uint8_t *pixels = malloc((size_t)width * height * channels);
    *ret_image = (struct image){width, height, channels, pixels};
    return pixels != NULL;
}

void image_free(struct image *image)
{
    free(image->pixels);
    *image = (struct image){0};
}

static const char *explain(const char *text)
{
    (void)snprintf(reason, sizeof reason, "%s", text);
    return reason;
}

static const char *no_room(uint32_t width, uint32_t height)
{
    (void)snprintf(reason, sizeof reason,
                   "no room for an image of %u x %u; sides of 1 to %u are possible", width, height,
                   IMAGE_SIDE_MAX);
    return reason;
}

static const char *load_png(FILE *file, struct image *ret_image)
{
    png_image png = {.version = PNG_IMAGE_VERSION};
    if (png_image_begin_read_from_stdio(&png, file) == 0) {
        return explain(png.message);
    }
    png.format = PNG_FORMAT_RGB;
    struct image image;
    if (!image_alloc(png.width, png.height, 3, &image)) {
        png_image_free(&png);
        return no_room(png.width, png.height);
    }
    static const png_color black = {0, 0, 0}; /* the background of transparent pixels */
    if (png_image_finish_read(&png, &black, image.pixels, 0, NULL) == 0) {
        image_free(&image);
        return explain(png.message);
    }
    *ret_image = image;
    return NULL;
}

/* The error handler must jump here; otherwise libjpeg ends the process. */
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

static const char *decode(struct decoder *d, FILE *file)
{
    jpeg_create_decompress(&d->jpeg);
    jpeg_stdio_src(&d->jpeg, file);
    jpeg_read_header(&d->jpeg, TRUE);
    d->jpeg.out_color_space = JCS_RGB;
    jpeg_start_decompress(&d->jpeg);
    if (!image_alloc(d->jpeg.output_width, d->jpeg.output_height, 3, &d->image)) {
        return no_room(d->jpeg.output_width, d->jpeg.output_height);
    }
    while (d->jpeg.output_scanline < d->jpeg.output_height) {
        JSAMPROW row = d->image.pixels + (size_t)d->jpeg.output_scanline * d->image.width * 3;
        jpeg_read_scanlines(&d->jpeg, &row, 1);
    }
    jpeg_finish_decompress(&d->jpeg);
    return NULL;
}

static const char *load_jpeg(FILE *file, struct image *ret_image)
{
    struct decoder d;
    memset(&d, 0, sizeof d);
    d.jpeg.err = jpeg_std_error(&d.errors);
    d.errors.error_exit = on_error;
    d.errors.emit_message = on_warning;
    d.jpeg.client_data = &d;
    const char *why;
    if (setjmp(d.away) == 0) {
        why = decode(&d, file);
    } else {
        why = explain(d.text);
    }
    jpeg_destroy_decompress(&d.jpeg);
    if (why != NULL) {
        image_free(&d.image);
        return why;
    }
    *ret_image = d.image;
    return NULL;
}

const char *image_load(const char *path, struct image *ret_image)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (file == NULL) {
        return explain(strerror(errno));
    }
    int first = getc(file);
    const char *why = ferror(file) != 0 ? explain(strerror(errno)) : "neither JPEG nor PNG";
    (void)ungetc(first, file);
    if (first == 0x89) {
        why = load_png(file, ret_image);
    } else if (first == 0xff) {
        why = load_jpeg(file, ret_image);
    }
    (void)fclose(file);
    return why;
}

const char *image_save(const char *path, const struct image *image)
{
    png_image png = {
        .version = PNG_IMAGE_VERSION,
        .width = image->width,
        .height = image->height,
        .format = image->channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB,
    };
    return png_image_write_to_file(&png, path, 0, image->pixels, 0, NULL) != 0
               ? NULL
               : explain(png.message);
}
