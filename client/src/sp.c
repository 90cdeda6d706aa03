#include "client/src/sp.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define ID_BYTES     4
#define LENGTH_BYTES 8
#define IPC_MESSAGE  0x01

struct message *message_create(size_t size)
{
    if (size > SIZE_MAX - sizeof(struct message)) {
        return NULL;
    }
    struct message *m = malloc(sizeof *m + size);
    if (m != NULL) {
        atomic_init(&m->refs, 1);
        m->id = 0;
        m->size = size;
    }
    return m;
}

struct message *message_ref(struct message *m)
{
    (void)atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    return m;
}

void message_unref(struct message *m)
{
    if (m != NULL && atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) == 1) {
        free(m);
    }
}

struct bytes message_view(const struct message *m)
{
    return bytes_of(m->data, m->size);
}

void sp_hello(enum sp_protocol self, uint8_t ret_hello[SP_HELLO_BYTES])
{
    const uint8_t hello[SP_HELLO_BYTES] = {0, 'S', 'P', 0, 0, (uint8_t)self, 0, 0};
    memcpy(ret_hello, hello, sizeof hello);
}

size_t sp_head(enum sp_transport transport, uint32_t id, size_t size, uint8_t ret_head[SP_HEAD_MAX])
{
    size_t at = 0;
    if (transport == SP_IPC) {
        ret_head[at++] = IPC_MESSAGE;
    }
    uint64_t length = htobe64((uint64_t)size + ID_BYTES);
    memcpy(ret_head + at, &length, sizeof length);
    at += sizeof length;
    uint32_t wire_id = htobe32(id);
    memcpy(ret_head + at, &wire_id, sizeof wire_id);
    return at + sizeof wire_id;
}

void sp_reader_init(struct sp_reader *r, enum sp_transport transport, enum sp_protocol peer,
                    size_t limit)
{
    *r = (struct sp_reader){.transport = transport, .peer = peer, .limit = limit};
}

void sp_reader_finish(struct sp_reader *r)
{
    message_unref(r->body);
    r->body = NULL;
}

/* Takes from the input until the head has `want` bytes. */
static bool head_fill(struct sp_reader *r, struct bytes *io_input, size_t want)
{
    size_t size = want - r->head_got;
    if (size > io_input->size) {
        size = io_input->size;
    }
    if (size > 0) {
        memcpy(r->head + r->head_got, io_input->data, size);
        r->head_got += size;
        *io_input = bytes_of(io_input->data + size, io_input->size - size);
    }
    return r->head_got == want;
}

static int greet(struct sp_reader *r, struct err *e)
{
    uint8_t hello[SP_HELLO_BYTES];
    sp_hello(r->peer, hello);
    if (memcmp(r->head, hello, sizeof hello) != 0) {
        return err_set(e, ERR_PROTOCOL, "peer does not speak the expected SP protocol (0x%02x)",
                       (unsigned)r->peer);
    }
    r->greeted = true;
    r->head_got = 0;
    return 0;
}

/* The frame's header is there: checks it and makes room for the message. */
static int body_begin(struct sp_reader *r, struct err *e)
{
    size_t at = 0;
    if (r->transport == SP_IPC) {
        if (r->head[0] != IPC_MESSAGE) {
            return err_set(e, ERR_PROTOCOL, "frame of type 0x%02x", r->head[0]);
        }
        at = 1;
    }
    uint64_t length;
    memcpy(&length, r->head + at, sizeof length);
    length = be64toh(length);
    if (length < ID_BYTES) {
        return err_set(e, ERR_PROTOCOL, "frame of %llu bytes has no request id",
                       (unsigned long long)length);
    }
    if (length - ID_BYTES > r->limit) {
        return err_set(e, ERR_LIMIT, "frame of %llu bytes, at most %zu", (unsigned long long)length,
                       r->limit + ID_BYTES);
    }
    uint32_t id;
    memcpy(&id, r->head + at + LENGTH_BYTES, sizeof id);
    id = be32toh(id);
    if ((id & SP_ID_BIT) == 0) {
        return err_set(e, ERR_PROTOCOL, "reply with request id 0x%08x", id);
    }
    r->body = message_create((size_t)length - ID_BYTES);
    if (r->body == NULL) {
        return err_set(e, ERR_NOMEM, "message of %llu bytes", (unsigned long long)length);
    }
    r->body->id = id;
    r->body_got = 0;
    return 0;
}

static struct message *body_end(struct sp_reader *r)
{
    struct message *m = r->body;
    r->body = NULL;
    r->head_got = 0;
    return m;
}

int sp_read(struct sp_reader *r, struct bytes *io_input, struct message **ret_message,
            struct err *e)
{
    if (!r->greeted) {
        if (!head_fill(r, io_input, SP_HELLO_BYTES)) {
            return 0;
        }
        int rc = greet(r, e);
        if (rc != 0) {
            return rc;
        }
    }
    if (r->body == NULL) {
        size_t want = (r->transport == SP_IPC ? 1 : 0) + LENGTH_BYTES + ID_BYTES;
        if (!head_fill(r, io_input, want)) {
            return 0;
        }
        int rc = body_begin(r, e);
        if (rc != 0) {
            return rc;
        }
    }
    size_t size = r->body->size - r->body_got;
    if (size > io_input->size) {
        size = io_input->size;
    }
    if (size > 0) {
        memcpy(r->body->data + r->body_got, io_input->data, size);
        *io_input = bytes_of(io_input->data + size, io_input->size - size);
    }
    return sp_direct_done(r, size, ret_message) ? 1 : 0;
}

uint8_t *sp_direct(struct sp_reader *r, size_t *ret_room)
{
    if (r->body == NULL) {
        return NULL;
    }
    *ret_room = r->body->size - r->body_got;
    return r->body->data + r->body_got;
}

bool sp_direct_done(struct sp_reader *r, size_t size, struct message **ret_message)
{
    r->body_got += size;
    if (r->body_got < r->body->size) {
        return false;
    }
    *ret_message = body_end(r);
    return true;
}
