#include "daemon/front/clients/reply.h"

#include "common/log.h"
#include "daemon/front/clients/lane.h"
#include "daemon/front/model/op.h"
#include "daemon/front/model/request.h"
#include "proto/codec.h"

static void keep(struct op *o, struct bytes reply)
{
    if (!op_answer(o, reply)) {
        log_say(LOG_NO_MEMORY, "no memory for an answer of %zu bytes", reply.size);
    }
}

void reply_answer(struct front *f, struct op *o, struct bytes reply)
{
    if (o == NULL) {
        return;
    }
    if (o->slot != NULL) {
        f->io.reply(f->listener, o->slot, reply);
        o->slot = NULL;
    }
    if (op_unnumbered(o) || op_acked(o)) {
        /* an unnumbered request came over the socket, and no client asks for an acknowledged
         * answer again */
        op_destroy(o);
        return;
    }
    keep(o, reply);
    if (o->ring_id != 0 && o->session->lane != NULL) {
        lane_answer(o->session->lane, o, reply);
    }
}

void reply_plain(struct front *f, const struct request *r, struct bytes reply)
{
    if (r->slot != NULL) {
        f->io.reply(f->listener, r->slot, reply);
    } else if (r->session != NULL && r->session->lane != NULL) {
        lane_reply(r->session->lane, r->ring_id, reply);
    }
}

void reply_none(struct front *f, struct request *r)
{
    if (r->slot != NULL) {
        f->io.drop(f->listener, r->slot);
    }
    request_destroy(r);
}

void reply_forget(struct front *f, struct op *o)
{
    if (o->slot != NULL) {
        f->io.drop(f->listener, o->slot);
    }
    o->slot = NULL;
    o->ring_id = 0;
}

void reply_redirect(struct front *f, struct op *o, const struct request *r)
{
    reply_forget(f, o);
    o->slot = r->slot;
    o->ring_id = r->ring_id;
}

void reply_answer_error(struct front *f, struct op *o, const struct err *e, struct bytes log)
{
    struct capbuf out;
    struct msg_error m;
    uint8_t room[PROTO_ERROR_BYTES];
    capbuf_init(&out, PROTO_LOG_MAX + 8192);
    proto_error_from(e, &m);
    m.log = log.size <= PROTO_LOG_MAX ? log : bytes_of(log.data, PROTO_LOG_MAX);
    bool whole = proto_encode(&schema_msg_error, &m, &out, NULL) == 0;
    reply_answer(f, o, whole ? capbuf_view(&out) : proto_error_put(e, false, room));
    capbuf_finish(&out);
}

static void refuse(struct front *f, struct request *r, const struct err *e, bool open)
{
    uint8_t room[PROTO_ERROR_BYTES];
    reply_plain(f, r, proto_error_put(e, open, room));
    request_destroy(r);
}

void reply_error(struct front *f, struct request *r, const struct err *e)
{
    refuse(f, r, e, false);
}

void reply_open(struct front *f, struct request *r, const struct err *e)
{
    refuse(f, r, e, true);
}
