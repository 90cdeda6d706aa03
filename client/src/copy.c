#include "client/src/copy.h"

#include <stdlib.h>

#include "client/src/client.h"
#include "common/shape.h"

#define PIECE_BYTES (UINT64_C(8) << 20)

/* One side: elements [first, first + count) of a buffer. */
struct side {
    gpud_buffer buffer;
    gpud_buffer_desc desc;
    uint64_t first, count;
};

static uint64_t elements(const gpud_shape *s)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < s->ndim; i++) {
        count *= s->dim[i];
    }
    return count;
}

static int side_find(gpud_client *client, const gpud_arg *arg, struct side *ret_side)
{
    ret_side->buffer = (gpud_buffer){arg->handle};
    ret_side->desc = (gpud_buffer_desc){.size = sizeof ret_side->desc};
    int rc = gpud_buffer_info(client, ret_side->buffer, &ret_side->desc);
    if (rc == 0) {
        ret_side->first = arg->first;
        ret_side->count =
            arg->count != 0 ? arg->count : elements(&ret_side->desc.shape) - arg->first;
    }
    return rc;
}

static int copy_pieces(gpud_client *client, const struct side *to, const struct side *from)
{
    struct err e = ERR_INIT;
    int dtype = (int)from->desc.shape.dtype;
    uint64_t most = PIECE_BYTES / dtype_size(dtype);
    void *piece = malloc(PIECE_BYTES);
    int rc = piece != NULL ? 0 : error_report(err_set(&e, ERR_NOMEM, "copy of a piece"), &e);
    for (uint64_t at = 0; rc == 0 && at < from->count; at += most) {
        uint64_t n = from->count - at < most ? from->count - at : most;
        rc = gpud_read(client, from->buffer, dtype, from->first + at, n, piece, NULL);
        rc = rc == 0 ? gpud_write(client, to->buffer, dtype, to->first + at, n, piece, NULL) : rc;
    }
    free(piece);
    return rc;
}

bool copy_between_devices(gpud_client *client, const gpud_arg *to, const gpud_arg *from,
                          int *ret_code)
{
    struct side source;
    struct side target;
    if (side_find(client, to, &target) != 0 || side_find(client, from, &source) != 0 ||
        source.desc.device == target.desc.device || source.count != target.count ||
        source.desc.shape.dtype != target.desc.shape.dtype) {
        return false;
    }
    *ret_code = copy_pieces(client, &target, &source);
    return true;
}
