/* BUFFER_EXPORT: the descriptor by which the driver of another process maps a buffer's memory. The
 * worker sends it, the buffer keeps it, and clients get it over shm.sock for a nonce, a new one for
 * each request. */
#include <unistd.h>

#include "common/descriptors.h"
#include "daemon/front/clients/reply.h"
#include "daemon/front/clients/shm.h"
#include "daemon/front/requests/requests.h"
#include "daemon/front/workers/command.h"
#include "proto/codec.h"

static int hand_out(void *data, struct frame_fds *given, struct frame_fds *ret_fds, struct err *e)
{
    struct buffer *b = data;
    (void)given;
    if (b->export_fd < 0 || buffer_outlived(b)) {
        return err_set(e, ERR_BUFFER_LOST, "buffer %#llx is freed or lost",
                       (unsigned long long)b->handle);
    }
    ret_fds->fd[0] = b->export_fd;
    ret_fds->count = 1;
    return 0;
}

static int encode(struct front *f, struct buffer *b, const struct session *s, struct capbuf *out,
                  struct err *e)
{
    const struct ticket t = {
        .uid = s->key.uid, .listener = s->key.listener, .claim = hand_out, .data = b};
    uint8_t nonce[PROTO_NONCE_BYTES];
    int rc = shm_offer(f->shm, &t, nonce, e);
    if (rc != 0) {
        return rc;
    }
    struct msg_exported m = {.nonce = bytes_of(nonce, sizeof nonce),
                             .bytes = b->export_bytes,
                             .device = bytes_str(f->device[b->device]->pin)};
    return proto_encode(&schema_msg_exported, &m, out, e);
}

static int check(const struct request_context *c, const struct buffer *b, struct err *e)
{
    unsigned long long handle = b->handle;
    if (b->owner != c->s) {
        return err_set(e, ERR_PERMISSION, "buffer %#llx was made by another session", handle);
    }
    if ((b->flags & BUFFER_FLAG_EXPORT) == 0) {
        return err_set(e, ERR_STATE,
                       "buffer %#llx shares its memory with others: create it with the flag "
                       "EXPORT, or copy it into a buffer with that flag",
                       handle);
    }
    if (c->f->shm == NULL) {
        return err_set(e, ERR_UNSUPPORTED, "this daemon has no socket for descriptors");
    }
    if (buffer_state(b) == BUFFER_LOST) {
        return err_set(e, ERR_BUFFER_LOST, "buffer %#llx is lost", handle);
    }
    if (buffer_state(b) != BUFFER_LIVE || b->pending != NULL) {
        return err_set(e, ERR_STATE, "buffer %#llx is being made, sealed or exported", handle);
    }
    if (b->export_fd < 0 && device_drains(c->f->device[b->device])) {
        return device_refuse_drained(c->f->device[b->device], e);
    }
    return descriptors_left()
               ? 0
               : err_set(e, ERR_LIMIT,
                         "no descriptor is left for the export: raise LimitNOFILE= of the unit");
}

int request_buffer_export(struct request_context *c, struct err *e)
{
    struct buffer *b = NULL;
    int rc = buffer_find_for(&c->f->buffers, c->r->msg.buffer_export.handle, c->s, &b, e);
    rc = rc == 0 ? check(c, b, e) : rc;
    if (rc != 0) {
        return rc;
    }
    if (b->export_fd >= 0) {
        return encode(c->f, b, c->s, c->out, e);
    }
    b->pending = c->o;
    command_buffer_export(c->f, b);
    return 0;
}

static void answer(struct front *f, struct buffer *b, struct err *e)
{
    struct op *o = b->pending;
    struct capbuf out;
    b->pending = NULL;
    if (o == NULL) {
        return;
    }
    capbuf_init(&out, 4096);
    if (e->code == 0 && b->owner != NULL && encode(f, b, b->owner, &out, e) == 0) {
        reply_answer(f, o, capbuf_view(&out));
    } else {
        reply_answer_error(f, o, e, (struct bytes){0});
    }
    capbuf_finish(&out);
}

void buffer_exported(struct front *f, struct device *d, const struct msg_w_exported *m, int fd)
{
    struct buffer *b = idmap_get(&f->buffers, m->id);
    struct err e = ERR_INIT;
    if (b == NULL || b->device != d->index || b->state != BUFFER_LIVE || b->export_fd >= 0) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return;
    }
    if (m->code != 0 || fd < 0) {
        (void)err_set_vendor(&e, m->code != 0 ? (int)m->code : ERR_PROTOCOL, (int)m->vendor,
                             "export of buffer %s: %.*s", b->label, (int)m->text.size,
                             (const char *)m->text.data);
        if (fd >= 0) {
            (void)close(fd);
        }
    } else {
        b->export_fd = fd;
        b->export_bytes = m->bytes;
    }
    answer(f, b, &e);
}
