/* The kernels of an image, as its readers find them, and its architecture. Pure except for
 * memory. Thread: any. */
#ifndef BACKEND_CUDA_IMAGE_IMAGE_KERNELS_H
#define BACKEND_CUDA_IMAGE_IMAGE_KERNELS_H

#include "daemon/backend/backend.h"

#define IMAGE_KERNELS_MAX 256u
#define IMAGE_BYTES_MAX   (60u * 1024u * 1024u)
#define IMAGE_ARGS_MAX    BACKEND_ARGS_MAX

/* A compute capability, such as "sm_90a". */
struct image_arch {
    unsigned number; /* 90 means major 9, minor 0 */
    /* 'a': for exactly this capability; 'f': for its family; '\0': for later ones, too */
    char variant;
};

/* Reads "sm_90" or "compute_90a". Returns false for other text. */
bool image_arch_read(const char *text, struct image_arch *ret_arch);

/* The kernels as the image describes them. An argument of 8 bytes has an unknown kind unless PTX
 * calls it a pointer; the others are structs. Names of arguments are "". Owned by the caller of
 * image_…_read. */
struct image {
    struct backend_compiled_kernel *kernels; /* owned; image_finish frees it */
    unsigned kernel_count;
    unsigned left_out; /* number of kernels with too long a name */
    char left_out_name[128];
};

void image_finish(struct image *i);
/* Adds a kernel, zeroed except for its name. arg_count may exceed the length of `arg`. A kernel
 * with too long a name is only counted: it has no name, and the next kernel overwrites it. */
int image_kernel_add(struct image *i, const char *entry,
                     struct backend_compiled_kernel **ret_kernel, struct err *e);
/* To be called at the end of a reader. On success *ret_image takes over `made`; if rc is an
 * error, `made` is finished. Returns rc. Kernels with too many arguments become unfit. */
int image_done(struct image *made, int rc, struct image *ret_image);

#endif
