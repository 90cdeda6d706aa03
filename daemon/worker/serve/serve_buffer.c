/* Frames about buffers, and reports about them. */
#include <inttypes.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/worker/serve/serve_int.h"

/* ---- transfers ------------------------------------------------------------------------------- */

void server_transfer_done(void *data, struct buffer *b, const struct err *why)
{
    struct server *s = data;
    struct err e = ERR_INIT;
    bool gone = b->loss != BUFFER_WHOLE && !b->freed;
    server_must_send(s, answer_buffer(&s->channel, b->id, gone, why, &e), &e);
    if (device_is_lost(why->code)) {
        server_end_lost(s, why->text);
    }
    if (gone) {
        buffer_free(&s->buffers, b);
    }
}

bool server_buffer_used(void *data, const struct buffer *b, uint64_t behind)
{
    const struct server *s = data;
    for (const struct job *j = s->completion.first; j != NULL && j->arrival <= behind;
         j = j->next) {
        for (unsigned i = 0; i < j->buffer_count; i++) {
            if (j->buffers[i] == b) {
                return true;
            }
        }
    }
    return false;
}

int server_read_away(void *data, const struct buffer *b, uint64_t at, void *to, uint64_t bytes,
                     struct err *e)
{
    const struct server *s = data;
    return spill_read(&s->spill, b, at, to, bytes, e);
}

/* ---- frames ---------------------------------------------------------------------------------- */

int serve_buffer_create(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_buffer_create msg;
    struct buffer *b = NULL;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_buffer_create, frame, &msg, e);
    const struct buffer_ask ask = {.id = msg.id,
                                   .size = msg.size,
                                   .tenant = msg.tenant,
                                   .exported = msg.exported != 0,
                                   .managed = msg.managed != 0,
                                   .stays = msg.stays != 0,
                                   .module = msg.module,
                                   .variable = msg.variable};
    rc = rc == 0 ? buffer_create(&s->buffers, &ask, &b, e) : rc;
    if (rc != 0) {
        return rc;
    }
    memory_stamp(&s->device.memory, clock_now_ns());
    b->content = b->module != NULL ? BUFFER_BYTES : msg.zero != 0 ? BUFFER_ZEROS : BUFFER_UNDEFINED;
    bool clean = msg.zero == 0 && !b->piece.dirty && !memory_unmapped(&b->piece) &&
                 memory_settled(&s->device.memory, &b->piece);
    if (clean || b->piece.ref.block == NULL) {
        struct err ok = ERR_INIT;
        return answer_buffer(&s->channel, msg.id, false, &ok, e);
    }
    bool zero = msg.zero != 0 || b->piece.dirty;
    rc = transfer_start(&s->transfers, zero ? TRANSFER_ZERO : TRANSFER_SETTLE, b, NULL, 0, e);
    if (rc != 0) {
        buffer_free(&s->buffers, b);
    }
    return rc;
}

/* A new front hears of a buffer before its memory is zeroed. Another process would see what was
 * there before. */
static int export_piece(struct server *s, const struct buffer *b, int *ret_fd, uint64_t *ret_bytes,
                        struct err *e)
{
    if (b->arrival != BUFFER_ARRIVED || b->filling != NULL) {
        return err_set(e, ERR_STATE, "the memory is not zeroed yet: export the buffer again");
    }
    return memory_share(&s->device.memory, &b->piece, ret_fd, ret_bytes, e);
}

int serve_buffer_export(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_buffer_export msg;
    struct msg_w_exported answer = {0};
    struct frame_fds out = {.count = 1};
    struct err why = ERR_INIT;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_buffer_export, frame, &msg, e);
    if (rc != 0) {
        return rc;
    }
    struct buffer *b = buffer_find(&s->buffers, msg.id, &why);
    answer.id = msg.id;
    rc = b == NULL ? ERR_BAD_HANDLE : export_piece(s, b, &out.fd[0], &answer.bytes, &why);
    answer.code = rc;
    answer.vendor = rc != 0 ? why.vendor : 0;
    answer.text = bytes_str(rc != 0 ? why.text : "");
    server_must_send(
        s, channel_send(&s->channel, &schema_msg_w_exported, &answer, rc == 0 ? &out : NULL, e), e);
    if (rc == 0) {
        (void)close(out.fd[0]);
    } else if (device_is_lost(rc)) {
        server_end_lost(s, why.text);
    }
    return 0;
}

int serve_buffer_free(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_buffer_free msg;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_buffer_free, frame, &msg, e);
    struct buffer *b = rc == 0 ? buffer_find(&s->buffers, msg.id, e) : NULL;
    if (b == NULL) {
        return ERR_BAD_HANDLE;
    }
    buffer_free(&s->buffers, b);
    memory_stamp(&s->device.memory, clock_now_ns());
    return 0;
}

static int host_take(struct frame_fds *fds, uint64_t size, bool writable, struct memfd *ret_m,
                     struct err *e)
{
    if (fds->count != 1 || size == 0 || size > SIZE_MAX / 2) {
        return err_set(e, ERR_PROTOCOL, "a host copy of %" PRIu64 " bytes needs one descriptor",
                       size);
    }
    int rc = memfd_adopt(fds->fd[0], (size_t)size, writable, ret_m, e);
    fds->count = rc == 0 ? 0 : fds->count;
    return rc;
}

int serve_buffer_seal(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_buffer_seal msg;
    struct memfd host = MEMFD_NONE;
    int rc = proto_decode(&schema_msg_f_buffer_seal, frame, &msg, e);
    struct buffer *b = rc == 0 ? buffer_find(&s->buffers, msg.id, e) : NULL;
    if (b == NULL) {
        return rc != 0 ? rc : ERR_BAD_HANDLE;
    }
    if (b->size != msg.size) {
        return err_set(e, ERR_STATE, "buffer %" PRIu64 " of %" PRIu64 " bytes cannot be sealed",
                       b->id, b->size);
    }
    rc = host_take(fds, msg.size, true, &host, e);
    if (rc == 0) { /* a former front may have asked for a seal: only the last copy counts */
        transfers_supersede(&s->transfers, b);
    }
    /* the copy contains what the jobs that were started before leave in the buffer */
    rc = rc == 0 ? transfer_start(&s->transfers, msg.lent != 0 ? TRANSFER_LEND : TRANSFER_SEAL, b,
                                  &host, s->completion.arrivals, e)
                 : rc;
    memfd_finish(&host);
    return rc;
}

int serve_buffer_restore(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_buffer_restore msg;
    struct memfd host = MEMFD_NONE;
    struct buffer *b = NULL;
    int rc = proto_decode(&schema_msg_f_buffer_restore, frame, &msg, e);
    rc = rc == 0 ? host_take(fds, msg.size, false, &host, e) : rc;
    struct buffer_ask ask = {.id = msg.id,
                             .size = msg.size,
                             .tenant = msg.tenant,
                             .exported = msg.exported != 0,
                             .managed = msg.managed != 0,
                             .stays = msg.stays != 0,
                             .held = msg.lent != 0};
    rc = rc == 0 ? buffer_create(&s->buffers, &ask, &b, e) : rc;
    if (rc == ERR_LIMIT && ask.stays) { /* limits may be lower than when it was made */
        ask.stays = false;
        rc = buffer_create(&s->buffers, &ask, &b, e);
    }
    if (rc == 0) {
        b->content = BUFFER_BYTES;
    }
    if (rc == 0 && msg.lent != 0) {
        buffer_lend(&s->buffers, b);
    }
    /* the first job that needs it brings its content in */
    if (rc == 0 && b->piece.ref.block == NULL) {
        struct err ok = ERR_INIT;
        b->sealed_fd = host.fd;
        host.fd = -1;
        memfd_finish(&host);
        return answer_buffer(&s->channel, b->id, false, &ok, e);
    }
    rc = rc == 0 ? transfer_start(&s->transfers, TRANSFER_RESTORE, b, &host, 0, e) : rc;
    if (rc != 0 && b != NULL) {
        buffer_free(&s->buffers, b);
    }
    memfd_finish(&host);
    return rc;
}
