#include "client/src/api/copy.h"

#include <stdlib.h>

#include "client/src/api/transfer.h"
#include "client/src/base/client.h"
#include "client/src/base/enter.h"
#include "client/src/base/error.h"
#include "client/src/objects/handles.h"
#include "client/src/objects/job.h"
#include "client/src/session/call.h"
#include "client/src/session/job_wait.h"
#include "common/shape.h"

#define PIECE_BYTES  (UINT64_C(4) << 20)
#define SHARED_BYTES (UINT64_C(256) << 10) /* copies from here on use shared memory */

/* One side: elements [first, first + count) of a buffer. */
struct side {
    gpud_buffer buffer;
    gpud_buffer_desc desc;
    uint64_t first, count;
};

static int side_find(gpud_client *client, const gpud_arg *arg, struct side *ret_side)
{
    ret_side->buffer = (gpud_buffer){arg->handle};
    ret_side->desc = (gpud_buffer_desc){.size = sizeof ret_side->desc};
    int rc = gpud_buffer_info(client, ret_side->buffer, &ret_side->desc);
    if (rc == 0) {
        ret_side->first = arg->first;
        ret_side->count = arg->count != GPUD_REST
                              ? arg->count
                              : gpud_shape_count(ret_side->desc.shape) - arg->first;
    }
    return rc;
}

/* ---- through shared memory ------------------------------------------------------------------- */

/* Two pieces of memory that both workers map. While one piece is written to the target's device,
 * the next is read from the source's. A piece's write is submitted after its read has ended. */
struct relay {
    gpud_client *client;
    const struct side *to, *from;
    uint64_t to_daemon, from_daemon; /* handles */
    uint64_t most;                   /* elements of a piece */
    uint8_t *room;                   /* two pieces */
    struct gpud_job *read[2], *write[2];
};

static uint64_t piece_count(const struct relay *r, uint64_t index)
{
    uint64_t left = r->from->count - index * r->most;
    return left < r->most ? left : r->most;
}

static int piece_start(struct relay *r, uint64_t index, bool write, struct err *e)
{
    const struct side *side = write ? r->to : r->from;
    struct gpud_job **job = &(write ? r->write : r->read)[index % 2];
    struct part part = {
        .daemon = write ? r->to_daemon : r->from_daemon,
        .dtype = side->desc.shape.dtype,
        .write = write,
        .host = r->room + (index % 2) * PIECE_BYTES,
        .first = side->first + index * r->most,
        .count = piece_count(r, index),
    };
    return part_start(r->client, &part, job, e);
}

static int piece_end(struct relay *r, struct gpud_job **job, struct err *e)
{
    if (*job == NULL) {
        return 0;
    }
    int rc = job_wait(r->client, *job, client_deadline(r->client), e);
    job_release(r->client, *job);
    *job = NULL;
    return rc;
}

static int relay_pieces(struct relay *r, struct err *e)
{
    uint64_t pieces = (r->from->count + r->most - 1) / r->most;
    int rc = piece_start(r, 0, false, e);
    for (uint64_t i = 0; rc == 0 && i < pieces; i++) {
        if (i + 1 < pieces) { /* the daemon orders it after the write from the same memory */
            rc = piece_start(r, i + 1, false, e);
        }
        rc = rc == 0 ? piece_end(r, &r->read[i % 2], e) : rc;
        rc = rc == 0 ? piece_end(r, &r->write[i % 2], e) : rc;
        rc = rc == 0 ? piece_start(r, i, true, e) : rc;
    }
    struct err later = ERR_INIT;
    for (unsigned i = 0; i < 2; i++) { /* after an error, too: jobs must not outlive `room` */
        (void)piece_end(r, &r->read[i], &later);
        int ended = piece_end(r, &r->write[i], rc == 0 ? e : &later);
        rc = rc == 0 ? ended : rc;
    }
    return rc;
}

static int relay_run(struct relay *r, struct err *e)
{
    struct buffer *b = NULL;
    int rc = client_enter(r->client, e);
    if (rc != 0) {
        return rc;
    }
    rc = buffer_use(r->client, r->to->buffer, &b, e);
    r->to_daemon = rc == 0 ? b->daemon : 0;
    rc = rc == 0 ? buffer_use(r->client, r->from->buffer, &b, e) : rc;
    r->from_daemon = rc == 0 ? b->daemon : 0;
    rc = rc == 0 ? relay_pieces(r, e) : rc;
    if (rc != 0) {
        (void)err_wrap(e, "copy between devices");
    }
    client_leave(r->client);
    return rc;
}

/* False: the copy is small, or there is no memory for it; nothing was done. */
static bool copy_shared(gpud_client *client, const struct side *to, const struct side *from,
                        int *ret_code)
{
    void *room = NULL;
    struct err e = ERR_INIT;
    uint64_t element = dtype_size((int)from->desc.shape.dtype);
    if (from->count * element < SHARED_BYTES ||
        gpud_host_alloc(client, 2 * PIECE_BYTES, &room) != 0) {
        return false;
    }
    struct relay r = {
        .client = client,
        .to = to,
        .from = from,
        .most = PIECE_BYTES / element,
        .room = room,
    };
    int rc = relay_run(&r, &e);
    (void)gpud_host_free(client, room); /* a closed client has freed it already */
    *ret_code = error_report(rc, &e);
    return true;
}

/* ---- through this process -------------------------------------------------------------------- */

static int copy_pieces(gpud_client *client, const struct side *to, const struct side *from)
{
    struct err e = ERR_INIT;
    int dtype = (int)from->desc.shape.dtype;
    uint64_t most = PIECE_BYTES / dtype_size(dtype);
    void *piece = malloc(PIECE_BYTES);
    int rc = piece != NULL
                 ? 0
                 : error_report(err_set(&e, ERR_NOMEM, "no memory for the pieces of a copy"), &e);
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
    *ret_code = 0;
    if (source.count > 0 && !copy_shared(client, &target, &source, ret_code)) {
        *ret_code = copy_pieces(client, &target, &source);
    }
    return true;
}
