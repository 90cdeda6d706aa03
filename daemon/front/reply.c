#include "daemon/front/reply.h"

#include "common/log.h"
#include "proto/codec.h"

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
        op_destroy(o);
    } else if (!op_answer(o, reply)) {
        log_error("an answer of %zu bytes could not be kept", reply.size);
    }
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
    listener_reply(f->listener, r->slot, capbuf_view(&out));
    capbuf_finish(&out);
    request_destroy(r);
}
