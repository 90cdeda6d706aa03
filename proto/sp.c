#include "proto/sp.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define ID_BYTES     4
#define LENGTH_BYTES 8
#define IPC_MESSAGE  0x01
#define ROOM_FIRST   8192u /* bytes allocated first for a larger message */

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

/* Moves input to the head until it has `want` bytes; false: the input is used up before. */
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

static size_t frame_bytes(const struct sp_reader *r)
{
    return (r->transport == SP_IPC ? 1 : 0) + LENGTH_BYTES;
}

/* Checks a complete frame header: its type and length. */
static int frame_check(struct sp_reader *r, struct err *e)
{
    if (r->transport == SP_IPC && r->head[0] != IPC_MESSAGE) {
        return err_set(e, ERR_PROTOCOL, "frame of type 0x%02x", r->head[0]);
    }
    uint64_t length;
    memcpy(&length, r->head + frame_bytes(r) - sizeof length, sizeof length);
    length = be64toh(length);
    if (length < ID_BYTES) {
        return err_set(e, ERR_PROTOCOL, "frame of %llu bytes has no request id",
                       (unsigned long long)length);
    }
    if (length - ID_BYTES > r->limit) {
        return err_set(e, ERR_LIMIT, "frame of %llu bytes, at most %zu", (unsigned long long)length,
                       r->limit + ID_BYTES);
    }
    r->size = (size_t)length - ID_BYTES;
    return 0;
}

/* Checks the request id and makes room for the message. */
static int body_begin(struct sp_reader *r, struct err *e)
{
    uint32_t id;
    memcpy(&id, r->head + frame_bytes(r), sizeof id);
    id = be32toh(id);
    if ((id & SP_ID_BIT) == 0) {
        return err_set(e, ERR_PROTOCOL, "message with request id 0x%08x: its top bit is not set",
                       id);
    }
    r->room = r->size < ROOM_FIRST ? r->size : ROOM_FIRST;
    r->body = message_create(r->room);
    if (r->body == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a message of %zu bytes", r->size);
    }
    r->body->id = id;
    r->body->size = r->size;
    r->body_got = 0;
    return 0;
}

/* Reads the head of a message. 1: it is complete, and the body begins. */
static int head_read(struct sp_reader *r, struct bytes *io_input, struct err *e)
{
    size_t frame = frame_bytes(r);
    if (r->head_got < frame) {
        if (!head_fill(r, io_input, frame)) {
            return 0;
        }
        int rc = frame_check(r, e);
        if (rc != 0) {
            return rc;
        }
    }
    if (!head_fill(r, io_input, frame + ID_BYTES)) {
        return 0;
    }
    int rc = body_begin(r, e);
    return rc == 0 ? 1 : rc;
}

/* Doubles the full room, so that announced bytes take no memory before they arrive. */
static int body_grow(struct sp_reader *r, struct err *e)
{
    size_t left = r->body->size - r->room;
    size_t room = r->room + (left < r->room ? left : r->room);
    struct message *m = realloc(r->body, sizeof *m + room);
    if (m == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a message of %zu bytes", r->body->size);
    }
    r->body = m;
    r->room = room;
    return 0;
}

static int body_fill(struct sp_reader *r, struct bytes *io_input, struct message **ret_message,
                     struct err *e)
{
    int rc;
    do {
        size_t size = r->room - r->body_got;
        if (size > io_input->size) {
            size = io_input->size;
        }
        if (size > 0) {
            memcpy(r->body->data + r->body_got, io_input->data, size);
            *io_input = bytes_of(io_input->data + size, io_input->size - size);
        }
        rc = sp_direct_done(r, size, ret_message, e);
    } while (rc == 0 && io_input->size > 0);
    return rc;
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
        int rc = head_read(r, io_input, e);
        if (rc <= 0) {
            return rc;
        }
    }
    return body_fill(r, io_input, ret_message, e);
}

uint8_t *sp_direct(struct sp_reader *r, size_t *ret_room)
{
    if (r->body == NULL) {
        return NULL;
    }
    *ret_room = r->room - r->body_got;
    return r->body->data + r->body_got;
}

int sp_direct_done(struct sp_reader *r, size_t size, struct message **ret_message, struct err *e)
{
    r->body_got += size;
    if (r->body_got == r->body->size) {
        *ret_message = r->body;
        r->body = NULL;
        r->head_got = 0;
        return 1;
    }
    return r->body_got == r->room ? body_grow(r, e) : 0;
}

bool sp_between(const struct sp_reader *r)
{
    return r->greeted && r->body == NULL && r->head_got == 0;
}
