/* An image in memory. Reads JPEG and PNG files, writes PNG files. May block. */
#ifndef EDGES_IMAGE_H
#define EDGES_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#define IMAGE_SIDE_MAX 16384u /* pixels */

/* 8 bits a channel, rows from the top, no padding. */
struct image {
    uint32_t width;
    uint32_t height;
    uint32_t channels; /* 3: red, green, blue; 1: gray */
    uint8_t *pixels;   /* owned */
};

/* Allocates the pixels; false if the size is not between 1 and IMAGE_SIDE_MAX, or memory is out. */
bool image_alloc(uint32_t width, uint32_t height, uint32_t channels, struct image *ret_image);
void image_free(struct image *image);

/* Reads a JPEG or PNG file as red, green and blue; the first byte decides the format. "-" is
 * standard input. Returns NULL, or the reason of a failure, valid until the next call. */
const char *image_load(const char *path, struct image *ret_image);
/* Writes a PNG file. Returns NULL, or the reason why the file is not complete. */
const char *image_save(const char *path, const struct image *image);

#endif
