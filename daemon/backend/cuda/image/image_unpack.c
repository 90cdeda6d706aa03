#include <stdlib.h>
#include <string.h>

#include "daemon/backend/cuda/image/image_readers.h"

#ifdef IMAGE_WITH_LZ4
#include <lz4.h>
#endif
#ifdef IMAGE_WITH_ZSTD
#include <zstd.h>
#endif

/* Writes exactly out_size bytes, never more. ERR_UNSUPPORTED: built without this format. */
static int unpack(enum image_packing how, struct bytes packed, uint8_t *out, size_t out_size)
{
#ifdef IMAGE_WITH_LZ4
    if (how == IMAGE_LZ4) {
        int made = LZ4_decompress_safe((const char *)packed.data, (char *)out, (int)packed.size,
                                       (int)out_size);
        return made >= 0 && (size_t)made == out_size ? 0 : ERR_INVALID;
    }
#endif
#ifdef IMAGE_WITH_ZSTD
    if (how == IMAGE_ZSTD) {
        size_t made = ZSTD_decompress(out, out_size, packed.data, packed.size);
        return ZSTD_isError(made) == 0 && made == out_size ? 0 : ERR_INVALID;
    }
#endif
    (void)how;
    (void)packed;
    (void)out;
    (void)out_size;
    return ERR_UNSUPPORTED;
}

static int failed(int code, struct err *e)
{
    return code == ERR_UNSUPPORTED
               ? err_set(e, code,
                         "the fatbin's code for the device is compressed in a way that this build "
                         "does not read: compile with nvcc -no-compress, or load the cubin")
               : err_set(e, code,
                         "the fatbin is damaged: the code for the device cannot be decompressed");
}

int image_unpack(enum image_packing how, struct bytes packed, uint64_t size, uint8_t **ret_data,
                 struct err *e)
{
    if (size > IMAGE_BYTES_MAX || packed.size > IMAGE_BYTES_MAX) {
        return err_set(e, ERR_LIMIT, "the fatbin's code for the device has %llu bytes, at most %u",
                       (unsigned long long)size, IMAGE_BYTES_MAX);
    }
    if (size == 0 || packed.size == 0) {
        return failed(ERR_INVALID, e);
    }
    uint8_t *data = malloc(size);
    if (data == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a fatbin's code of %llu bytes",
                       (unsigned long long)size);
    }
    int rc = unpack(how, packed, data, size);
    if (rc != 0) {
        free(data);
        return failed(rc, e);
    }
    *ret_data = data;
    return 0;
}
