#include "daemon/front/reply.h"

#include "common/log.h"
#include "daemon/front/lane.h"
#include "proto/codec.h"

static void keep(struct op *o, struct bytes reply)
{
    if (!op_answer(o, reply)) {
        log_error("an answer of %zu bytes could not be kept", reply.size);
    }
}

void reply_answer(struct front *f, struct op *o, struct bytes reply)
{
    if (o == NULL) {
        return;
    }
    if (o->slot != NULL) {
        listener_reply(f->listener, o->slot, reply);
        o->slot = NULL;
    }
    if (o->loose || op_passed(o)) {
        op_destroy(o); /* by a ring nothing loose comes, and nobody asks for what was passed */
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
        listener_reply(f->listener, r->slot, reply);
    } else if (r->session != NULL && r->session->lane != NULL) {
        lane_reply(r->session->lane, r->ring_id, reply);
    }
}

void reply_none(struct front *f, struct request *r)
{
    if (r->slot != NULL) {
        listener_drop(f->listener, r->slot);
    }
    request_destroy(r);
}

void reply_forget(struct front *f, struct op *o)
{
    if (o->slot != NULL) {
        listener_drop(f->listener, o->slot);
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

static void encode_error(const struct err *e, struct bytes log, struct capbuf *out)
{
    struct msg_error m;
    proto_error_from(e, &m);
    m.log = log.size <= PROTO_LOG_MAX ? log : bytes_of(log.data, PROTO_LOG_MAX);
    if (proto_encode(&schema_msg_error, &m, out, NULL) != 0) {
        m.log = (struct bytes){0};
        capbuf_reset(out);
        (void)proto_encode(&schema_msg_error, &m, out, NULL);
    }
}

void reply_answer_error(struct front *f, struct op *o, const struct err *e, struct bytes log)
{
    struct capbuf out;
    capbuf_init(&out, PROTO_LOG_MAX + 8192);
    encode_error(e, log, &out);
    reply_answer(f, o, capbuf_view(&out));
    capbuf_finish(&out);
}

void reply_error(struct front *f, struct request *r, const struct err *e)
{
    struct capbuf out;
    capbuf_init(&out, 8192);
    encode_error(e, (struct bytes){0}, &out);
    reply_plain(f, r, capbuf_view(&out));
    capbuf_finish(&out);
    request_destroy(r);
}
