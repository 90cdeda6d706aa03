#include "daemon/backend/ranges.h"

#include <inttypes.h>

#define PATTERN_MAX 16u /* bytes */

int backend_range_check(const char *what, struct backend_range r, struct err *e)
{
    if (r.size == 0 || r.offset > r.block_size || r.size > r.block_size - r.offset) {
        return err_set(e, ERR_RANGE, "%s: %" PRIu64 " bytes at %" PRIu64 " in a block of %" PRIu64,
                       what, r.size, r.offset, r.block_size);
    }
    return 0;
}

int backend_copy_check(struct backend_range dst, struct backend_range src, struct err *e)
{
    int rc = backend_range_check("copy to", dst, e);
    rc = rc == 0 ? backend_range_check("copy from", src, e) : rc;
    if (rc == 0 && dst.block == src.block && dst.offset < src.offset + src.size &&
        src.offset < dst.offset + dst.size) {
        rc = err_set(e, ERR_INVALID, "copy: the ranges overlap");
    }
    return rc;
}

int backend_fill_check(struct backend_range dst, size_t pattern_size, struct err *e)
{
    size_t n = pattern_size;
    if (n == 0 || n > PATTERN_MAX || (n & (n - 1)) != 0 || dst.size % n != 0 ||
        dst.offset % n != 0) {
        return err_set(e, ERR_INVALID,
                       "fill: %" PRIu64 " bytes at %" PRIu64 " with a pattern of %zu bytes",
                       dst.size, dst.offset, n);
    }
    return backend_range_check("fill", dst, e);
}
