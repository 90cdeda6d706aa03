#include "client/src/wire/reply.h"

/* Makes an ERROR the error of the call; 0 if the answer is not an ERROR. */
static int reply_error(const struct message *m, struct err *e)
{
    struct msg_error error;
    struct bytes view = message_view(m);
    if (proto_kind(view) != MSG_KIND_ERROR) {
        return 0;
    }
    int rc = proto_decode(&schema_msg_error, view, &error, e);
    if (rc == 0) {
        proto_error_to(&error, e);
        rc = e->code;
    }
    return rc;
}

int reply_decode(const struct message *m, const struct schema *reply, void *ret_reply,
                 struct err *e)
{
    int rc = reply_error(m, e);
    return rc != 0 ? rc : proto_decode(reply, message_view(m), ret_reply, e);
}

int reply_decode_first(const struct message *m, const struct schema *reply, void *ret_reply,
                       const struct schema *record, void *ret_first, struct err *e)
{
    int rc = reply_error(m, e);
    return rc != 0 ? rc
                   : proto_decode_first(reply, message_view(m), ret_reply, record, ret_first, e);
}
