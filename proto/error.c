#include <string.h>

#include "proto/codec.h"

void proto_error_from(const struct err *e, struct msg_error *ret_msg)
{
    *ret_msg = (struct msg_error){
        .code = e->code,
        .vendor = e->vendor,
        .step = e->step,
        .arg = e->arg,
        .effects = (uint64_t)e->effects,
        .retry_after_ns = e->retry_after_ns,
        .text = bytes_str(e->text),
    };
}

struct bytes proto_error_put(const struct err *e, bool open, uint8_t room[PROTO_ERROR_BYTES])
{
    struct capbuf out = {.data = room, .capacity = PROTO_ERROR_BYTES, .limit = PROTO_ERROR_BYTES};
    struct msg_error m;
    proto_error_from(e, &m);
    m.open = open;
    (void)proto_encode(&schema_msg_error, &m, &out, NULL); /* `room` is enough for every text */
    return capbuf_view(&out);
}

/* The daemon sends only values that fit an int; others become `otherwise`. */
static int narrow(int64_t value, int otherwise)
{
    return value >= INT32_MIN && value <= INT32_MAX ? (int)value : otherwise;
}

void proto_error_to(const struct msg_error *msg, struct err *ret_e)
{
    *ret_e = ERR_INIT;
    int code = narrow(msg->code, ERR_INTERNAL);
    ret_e->code = code < 0 ? code : ERR_INTERNAL;
    ret_e->vendor = narrow(msg->vendor, 0);
    ret_e->step = narrow(msg->step, -1);
    ret_e->arg = narrow(msg->arg, -1);
    ret_e->effects = (int)msg->effects;
    ret_e->retry_after_ns = msg->retry_after_ns;
    size_t size = msg->text.size;
    if (size >= sizeof ret_e->text) {
        size = sizeof ret_e->text - 1;
        while (size > 0 && (msg->text.data[size] & 0xc0) == 0x80) {
            size--; /* do not split a UTF-8 sequence */
        }
    }
    if (size > 0) {
        memcpy(ret_e->text, msg->text.data, size);
    }
    ret_e->text[size] = '\0';
}
