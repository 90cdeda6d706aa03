#include "proto/compile.h"

#include <endian.h>
#include <string.h>

#define HEAD_BYTES    sizeof(uint64_t)
#define REQUEST_BYTES (PROTO_SOURCE_MAX + 256u * 1024u) /* with headers' names */

static int message_put(struct memfd *m, struct bytes message, struct err *e)
{
    if (m->size < HEAD_BYTES || message.size > m->size - HEAD_BYTES) {
        return err_set(e, ERR_LIMIT, "message of %zu bytes, shared memory has %zu", message.size,
                       m->size);
    }
    memcpy(m->data + HEAD_BYTES, message.data, message.size);
    uint64_t length = htole64(message.size);
    memcpy(m->data, &length, sizeof length);
    return 0;
}

/* *ret_message is empty if nothing was written. */
static int message_get(const struct memfd *m, struct bytes *ret_message, struct err *e)
{
    uint64_t length = 0;
    if (m->size < HEAD_BYTES) {
        return err_set(e, ERR_PROTOCOL, "shared memory of %zu bytes holds no message", m->size);
    }
    memcpy(&length, m->data, sizeof length);
    length = le64toh(length);
    if (length > m->size - HEAD_BYTES) {
        return err_set(e, ERR_PROTOCOL, "message of %llu bytes in shared memory of %zu",
                       (unsigned long long)length, m->size);
    }
    *ret_message = bytes_of(m->data + HEAD_BYTES, (size_t)length);
    return 0;
}

int compile_request_write(const struct compile_request *request, struct memfd *ret_m, struct err *e)
{
    struct msg_c_request msg = {
        .lang = (uint64_t)request->lang,
        .f64 = request->f64,
        .file = request->file,
        .options = request->options,
        .arch = request->arch,
        .source = request->source,
        .signature = request->signature,
        .headers = request->headers,
    };
    struct capbuf out;
    capbuf_init(&out, REQUEST_BYTES);
    struct memfd m = MEMFD_NONE;
    int rc = proto_encode(&schema_msg_c_request, &msg, &out, e);
    if (rc == 0) {
        rc = memfd_create_sealed("gpud-source", HEAD_BYTES + out.size, &m, e);
    }
    if (rc == 0) {
        rc = message_put(&m, capbuf_view(&out), e);
    }
    capbuf_finish(&out);
    if (rc != 0) {
        memfd_finish(&m);
        return rc;
    }
    *ret_m = m;
    return 0;
}

int compile_request_read(const struct memfd *m, struct compile_request *ret_request, struct err *e)
{
    struct bytes message;
    struct msg_c_request msg;
    int rc = message_get(m, &message, e);
    if (rc != 0) {
        return rc;
    }
    rc = proto_decode(&schema_msg_c_request, message, &msg, e);
    if (rc != 0) {
        return rc;
    }
    *ret_request = (struct compile_request){
        .lang = (int)msg.lang,
        .f64 = msg.f64 != 0,
        .source = msg.source,
        .file = msg.file,
        .options = msg.options,
        .arch = msg.arch,
        .signature = msg.signature,
        .headers = msg.headers,
    };
    return 0;
}

int compile_response_create(struct memfd *ret_m, struct err *e)
{
    return memfd_create_sealed("gpud-binary", COMPILE_RESPONSE_BYTES, ret_m, e);
}

int compile_response_write(const struct compile_response *response, struct memfd *m, struct err *e)
{
    struct msg_c_response msg = {
        .code = response->code,
        .vendor = response->vendor,
        .text = response->text,
        .log = response->log,
        .compiler = response->compiler,
        .binary = response->binary,
        .kernels = response->kernels,
        .entries = response->entries,
    };
    struct capbuf out;
    capbuf_init(&out, COMPILE_RESPONSE_BYTES);
    int rc = proto_encode(&schema_msg_c_response, &msg, &out, e);
    if (rc == 0) {
        rc = message_put(m, capbuf_view(&out), e);
    }
    capbuf_finish(&out);
    return rc;
}

int compile_response_read(const struct memfd *m, struct compile_response *ret_response,
                          struct err *e)
{
    struct bytes message;
    struct msg_c_response msg;
    int rc = message_get(m, &message, e);
    if (rc != 0) {
        return rc;
    }
    if (message.size == 0) {
        return err_set(e, ERR_COMPILE_LIMIT, "compiler ended without an answer");
    }
    rc = proto_decode(&schema_msg_c_response, message, &msg, e);
    if (rc != 0) {
        return rc;
    }
    if (msg.code > 0 || msg.code < INT32_MIN) {
        return err_set(e, ERR_PROTOCOL, "compiler answered code %lld", (long long)msg.code);
    }
    *ret_response = (struct compile_response){
        .code = (int)msg.code,
        .vendor = (int)msg.vendor,
        .text = msg.text,
        .log = msg.log,
        .compiler = msg.compiler,
        .binary = msg.binary,
        .kernels = msg.kernels,
        .entries = msg.entries,
    };
    return 0;
}
