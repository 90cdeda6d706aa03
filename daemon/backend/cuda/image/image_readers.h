/* The readers for the forms of compiled CUDA code. image.h describes checks and errors. */
#ifndef BACKEND_CUDA_IMAGE_IMAGE_READERS_H
#define BACKEND_CUDA_IMAGE_IMAGE_READERS_H

#include "daemon/backend/cuda/image/image_kernels.h"

/* NULs may follow the PTX. */
int image_ptx_read(struct bytes text, const struct image_arch *device, struct image *ret_image,
                   struct err *e);
int image_cubin_read(struct bytes elf, const struct image_arch *device, struct image *ret_image,
                     struct err *e);
/* Reads the entry that the driver will choose. It may be compressed. */
int image_fatbin_read(struct bytes fat, const struct image_arch *device, struct image *ret_image,
                      struct err *e);

/* How nvcc compresses an entry of a fatbin: zstd by default, LZ4 with --compress-mode=speed. */
enum image_packing { IMAGE_PLAIN, IMAGE_LZ4, IMAGE_ZSTD, IMAGE_OTHER };

/* Unpacks data of exactly `size` bytes; the size is checked before memory is allocated. The
 * caller frees *ret_data. ERR_UNSUPPORTED: the build has no library for `how`. */
int image_unpack(enum image_packing how, struct bytes packed, uint64_t size, uint8_t **ret_data,
                 struct err *e);

#endif
