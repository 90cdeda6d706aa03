/*
 * Reads and writes the SP wire format, the framing below NNG's and nanomsg's protocols, for daemon
 * and clients. Pure: uses no socket. A stream starts with an 8-byte header that names the protocol.
 * Frames follow: on ipc a byte 0x01 and the length, on tcp the length only, 8 bytes, big endian. A
 * message of REQ or REP begins with a 4-byte request id whose top bit is set. A word without that
 * bit is a hop, which an SP device adds; gpud has no SP devices, so a hop is refused.
 *
 * Thread: one owner. Memory: one message at a time, of at most `limit` bytes. A message takes 8 KiB
 * at first, then at most twice its received bytes: an announced size alone costs no memory.
 */
#ifndef PROTO_SP_H
#define PROTO_SP_H

#include <stdatomic.h>
#include <stdbool.h>

#include "common/bytes.h"
#include "common/err.h"

enum sp_protocol { SP_REQ = 0x30, SP_REP = 0x31 };
enum sp_transport { SP_IPC, SP_TCP };

#define SP_HELLO_BYTES 8
#define SP_HEAD_MAX    13 /* bytes in front of a message: frame header and request id */
#define SP_ID_BIT      0x80000000u

/* A received message, without its request id; shared by its readers, with a count of references. */
struct message {
    atomic_uint refs;
    uint32_t id; /* request id, top bit set */
    size_t size;
    uint8_t data[];
};

struct message *message_create(size_t size); /* refs 1; NULL: out of memory */
struct message *message_ref(struct message *m);
void message_unref(struct message *m); /* NULL is allowed */
struct bytes message_view(const struct message *m);

struct sp_reader {
    enum sp_transport transport;
    enum sp_protocol peer; /* the protocol that the other side must have */
    size_t limit;          /* bytes of a message without its request id */
    bool greeted;          /* the peer's stream header was read */
    uint8_t head[SP_HEAD_MAX];
    size_t head_got;
    size_t size;          /* of the next message, once its frame's header was read */
    struct message *body; /* owned; being filled */
    size_t body_got;
    size_t room; /* bytes that the body has memory for */
};

void sp_hello(enum sp_protocol self, uint8_t ret_hello[SP_HELLO_BYTES]);
/* Writes the head of a message of `size` bytes; returns the length of the head. */
size_t sp_head(enum sp_transport transport, uint32_t id, size_t size,
               uint8_t ret_head[SP_HEAD_MAX]);

void sp_reader_init(struct sp_reader *r, enum sp_transport transport, enum sp_protocol peer,
                    size_t limit);
void sp_reader_finish(struct sp_reader *r);
/*
 * Consumes *io_input until a message is complete or the input is used up. 1: *ret_message is the
 * caller's; call again for the rest of the input. 0: more input is needed. Negative: ERR_PROTOCOL,
 * ERR_LIMIT or ERR_NOMEM; the stream is then unusable.
 */
int sp_read(struct sp_reader *r, struct bytes *io_input, struct message **ret_message,
            struct err *e);
/* The memory for the next bytes of a message, to receive them without a copy; NULL if its size is
 * not known yet. sp_direct_done accounts for `size` received bytes, and returns as sp_read. */
uint8_t *sp_direct(struct sp_reader *r, size_t *ret_room);
int sp_direct_done(struct sp_reader *r, size_t size, struct message **ret_message, struct err *e);
bool sp_between(const struct sp_reader *r); /* greeted, and no part of a message was read */

#endif
