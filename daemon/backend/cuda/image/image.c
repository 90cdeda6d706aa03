#include "daemon/backend/cuda/image/image.h"

#include <string.h>

#include "daemon/backend/cuda/image/image_readers.h"

static bool begins(struct bytes b, const char magic[4])
{
    return b.size >= 4 && memcmp(b.data, magic, 4) == 0;
}

int image_read(int lang, struct bytes data, const struct image_arch *device,
               struct image *ret_image, struct err *e)
{
    if (data.size > IMAGE_BYTES_MAX) {
        return err_set(e, ERR_LIMIT, "a module of %zu bytes, at most %u", data.size,
                       IMAGE_BYTES_MAX);
    }
    if (lang == BACKEND_LANG_PTX) {
        return image_ptx_read(data, device, ret_image, e);
    }
    if (begins(data, "\x50\xed\x55\xba")) {
        return image_fatbin_read(data, device, ret_image, e);
    }
    if (begins(data, "\177ELF")) {
        return image_cubin_read(data, device, ret_image, e);
    }
    return err_set(e, ERR_INVALID, "neither a cubin nor a fatbin: %zu bytes", data.size);
}
