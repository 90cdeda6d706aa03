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

void server_buffer_refuse(void *data, uint64_t id, const struct err *why)
{
    struct server *s = data;
    struct err e = ERR_INIT;
    bool gone = buffer_find(&s->buffers, id, &e) == NULL;
    server_must_send(s, answer_buffer(&s->channel, id, gone, why, &e), &e);
    if (device_is_lost(why->code)) {
        server_end_lost(s, why->text);
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

/* Begins what fills a buffer without content, or answers. */
static int begin_new(struct server *s, const struct creation *x, struct buffer *b, struct err *e)
{
    memory_stamp(&s->device.memory, clock_now_ns());
    b->content = b->module != NULL ? BUFFER_BYTES : x->zero ? BUFFER_ZEROS : BUFFER_UNDEFINED;
    bool clean = !x->zero && !b->piece.dirty && !memory_unmapped(&b->piece) &&
                 memory_settled(&s->device.memory, &b->piece);
    if (clean || b->piece.ref.block == NULL) {
        struct err ok = ERR_INIT;
        return answer_buffer(&s->channel, b->id, false, &ok, e);
    }
    bool zero = x->zero || b->piece.dirty;
    return transfer_start(&s->transfers, zero ? TRANSFER_ZERO : TRANSFER_SETTLE, b, NULL, 0, e);
}

/* The same for a buffer with a host copy, which it takes over. */
static int begin_restored(struct server *s, struct creation *x, struct buffer *b, struct err *e)
{
    b->content = BUFFER_BYTES;
    if (x->ask.held) {
        buffer_lend(&s->buffers, b);
    }
    if (b->piece.ref.block != NULL) {
        return transfer_start(&s->transfers, TRANSFER_RESTORE, b, &x->host, 0, e);
    }
    /* the first job that needs it brings its content in */
    struct err ok = ERR_INIT;
    b->sealed_fd = x->host.fd;
    x->host.fd = -1;
    memfd_finish(&x->host);
    return answer_buffer(&s->channel, b->id, false, &ok, e);
}

int server_buffer_create(void *data, struct creation *x, bool last, struct err *e)
{
    struct server *s = data;
    struct buffer *b = NULL;
    struct buffer_ask ask = x->ask;
    ask.clearing = last ? NULL : &x->clearing;
    int rc = buffer_create(&s->buffers, &ask, &b, e);
    if (rc == ERR_LIMIT && ask.stays && x->host.fd >= 0) { /* limits may be lower than before */
        ask.stays = false;
        rc = buffer_create(&s->buffers, &ask, &b, e);
    }
    if (rc != 0) {
        return rc;
    }
    rc = x->host.fd >= 0 ? begin_restored(s, x, b, e) : begin_new(s, x, b, e);
    if (rc != 0) {
        buffer_free(&s->buffers, b);
    }
    return rc;
}

static int create(struct server *s, struct creation *x, struct err *e)
{
    if (creations_find(&s->creations, x->ask.id) != NULL) {
        return err_set(e, ERR_EXISTS, "buffer %" PRIu64 " is being created", x->ask.id);
    }
    int rc = server_buffer_create(s, x, false, e);
    if (rc != BUFFER_LATER) {
        return rc;
    }
    pump_again(&s->pump); /* buffers may have to move on */
    return creations_add(&s->creations, x, clock_now_ns(), e);
}

int serve_buffer_create(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_buffer_create msg;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_buffer_create, frame, &msg, e);
    struct creation x = {.ask = {.id = msg.id,
                                 .size = msg.size,
                                 .tenant = msg.tenant,
                                 .exported = msg.exported != 0,
                                 .managed = msg.managed != 0,
                                 .stays = msg.stays != 0,
                                 .module = msg.module,
                                 .variable = msg.variable},
                         .zero = msg.zero != 0,
                         .host = MEMFD_NONE};
    return rc == 0 ? create(s, &x, e) : rc;
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
    struct creation *x = rc == 0 ? creations_find(&s->creations, msg.id) : NULL;
    if (x != NULL) {
        creations_end(&s->creations, x);
        return 0;
    }
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
    int rc = proto_decode(&schema_msg_f_buffer_restore, frame, &msg, e);
    struct creation x = {.ask = {.id = msg.id,
                                 .size = msg.size,
                                 .tenant = msg.tenant,
                                 .exported = msg.exported != 0,
                                 .managed = msg.managed != 0,
                                 .stays = msg.stays != 0,
                                 .held = msg.lent != 0},
                         .host = MEMFD_NONE};
    rc = rc == 0 ? host_take(fds, msg.size, false, &x.host, e) : rc;
    rc = rc == 0 ? create(s, &x, e) : rc;
    memfd_finish(&x.host);
    return rc;
}
