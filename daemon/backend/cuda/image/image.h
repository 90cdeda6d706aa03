/*
 * Compiled CUDA code as users bring it and as NVRTC makes it: PTX, cubin (ELF), fatbin. It is read
 * as untrusted input, whole, before a driver sees it: what the headers say must lie within the
 * bytes. What the instructions do is not looked at. Pure but for memory. Thread: any.
 *
 * Errors: ERR_INVALID for what is damaged, with what is wrong and where; ERR_UNSUPPORTED for code
 * of another architecture, with what is there and what the device is; ERR_LIMIT.
 */
#ifndef BACKEND_CUDA_IMAGE_IMAGE_H
#define BACKEND_CUDA_IMAGE_IMAGE_H

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
    struct backend_compiled_kernel *kernels; /* owned: image_finish, or taken over */
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

/* `lang` is BACKEND_LANG_PTX, or BACKEND_LANG_CUBIN for a cubin or a fatbin. */
int image_read(int lang, struct bytes data, const struct image_arch *device,
               struct image *ret_image, struct err *e);
/* What image_read chooses from. NULs may end a PTX. */
int image_ptx_read(struct bytes text, const struct image_arch *device, struct image *ret_image,
                   struct err *e);
int image_cubin_read(struct bytes elf, const struct image_arch *device, struct image *ret_image,
                     struct err *e);
/* Kernels are those of the entry that the driver is going to choose, which may be compressed. */
int image_fatbin_read(struct bytes fat, const struct image_arch *device, struct image *ret_image,
                      struct err *e);

/* How nvcc compresses an entry of a fatbin: zstd by default, LZ4 with --compress-mode=speed. */
enum image_packing { IMAGE_PLAIN, IMAGE_LZ4, IMAGE_ZSTD, IMAGE_OTHER };

/* `size` is what the data has to become, exactly; it is checked before any memory is taken. The
 * caller frees *ret_data. ERR_UNSUPPORTED where the build has no library for `how`. */
int image_unpack(enum image_packing how, struct bytes packed, uint64_t size, uint8_t **ret_data,
                 struct err *e);

#endif
