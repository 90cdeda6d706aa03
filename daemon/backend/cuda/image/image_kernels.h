/* The kernels of an image, as its readers find them, and its architecture. Pure except for memory.
 * Thread: any. */
#ifndef BACKEND_CUDA_IMAGE_IMAGE_KERNELS_H
#define BACKEND_CUDA_IMAGE_IMAGE_KERNELS_H

#include "daemon/backend/backend.h"

#define IMAGE_KERNELS_MAX 256u
#define IMAGE_BYTES_MAX   (60u * 1024u * 1024u)
#define IMAGE_ARGS_MAX    BACKEND_ARGS_MAX

/* A compute capability, "sm_90a". */
struct image_arch {
    unsigned number; /* 90: major 9, minor 0 */
    char variant;    /* 'a': of exactly this one; 'f': of its family; '\0' */
};

/* "sm_90", "compute_90a"; false for another form */
bool image_arch_read(const char *text, struct image_arch *ret_arch);

/* Kernels as the image tells of them: of 8 bytes an argument's kind is unknown but where PTX calls
 * it a pointer, the others are structs; names are "". Owned by the caller of image_…_read. */
struct image {
    struct backend_compiled_kernel *kernels; /* owned; image_finish frees it */
    unsigned kernel_count;
    unsigned left_out; /* kernels with too long a name */
    char left_out_name[128];
};

void image_finish(struct image *i);
/* One more kernel, zeroed but for its name; arg_count may grow beyond the args that there are. One
 * that is left out has no name and is the next one's room. */
int image_kernel_add(struct image *i, const char *entry,
                     struct backend_compiled_kernel **ret_kernel, struct err *e);
/* What a reader ends with: *ret_image takes `made` over, which is finished if rc, also returned, is
 * an error. Kernels with too many arguments are unfit. */
int image_done(struct image *made, int rc, struct image *ret_image);

#endif
