/*
 * Encodes and decodes messages. Pure: no I/O, no clock. Decoding allocates nothing: texts, bytes
 * and lists of a decoded message point into the encoded message and live as long as it does.
 *
 * Decoding checks the whole message: every length against the rest of the input, every count and
 * value against its limit, nested lists included. The depth of nesting is the schema's.
 *
 * Thread: any.
 */
#ifndef PROTO_CODEC_H
#define PROTO_CODEC_H

#include "common/bytes.h"
#include "common/err.h"
#include "proto/frames.h"
#include "proto/messages.h"

enum schema_type { SCHEMA_U, SCHEMA_I, SCHEMA_S, SCHEMA_B, SCHEMA_L };

struct schema;

struct schema_field {
    const char *name;
    enum schema_type type;
    uint16_t offset;             /* in the C struct, bytes */
    uint64_t max;                /* value, bytes or count */
    const struct schema *record; /* SCHEMA_L */
};

struct schema {
    const char *name;
    uint16_t kind;  /* 0 for a record */
    uint16_t size;  /* of the C struct, bytes */
    uint16_t count; /* fields */
    const struct schema_field *fields;
};

/* schema_msg_<name> for messages and frames, schema_<name> for records */
#define X(NAME, name, value) extern const struct schema schema_msg_##name;
PROTO_MESSAGES(X)
PROTO_FRAMES(X)
#undef X
#define X(NAME, name) extern const struct schema schema_##name;
PROTO_RECORDS(X)
FRAME_RECORDS(X)
#undef X

const struct schema *schema_find(unsigned kind); /* NULL if unknown */

/* The kind of a message; MSG_KIND_NONE if it is not an array that starts with a small integer. */
unsigned proto_kind(struct bytes message);

/* Is the message one array that starts with a kind, with nothing after it? Its fields can be any
 * msgpack values. */
bool proto_well_formed(struct bytes message);

/* Appends a message. ERR_LIMIT if a field is over its limit, ERR_INVALID if a text has a NUL byte
 * or is a request's and not UTF-8 (texts of records are not checked for that), ERR_NOMEM if `out`
 * could not grow. */
int proto_encode(const struct schema *s, const void *msg, struct capbuf *out, struct err *e);
/* Decodes and checks a whole message of the given schema. `ret_msg` (s->size bytes) is zeroed
 * first. ERR_PROTOCOL names the message, the field and the problem. Bytes after the message, and
 * texts of requests that are not UTF-8, are errors too. */
int proto_decode(const struct schema *s, struct bytes message, void *ret_msg, struct err *e);
/* The same, and decodes the first record of the first list of `record`s to ret_first (record->size
 * bytes): zeros for an empty list; undefined after an error. Saves a caller that reads this record
 * next a second decoding. */
int proto_decode_first(const struct schema *s, struct bytes message, void *ret_msg,
                       const struct schema *record, void *ret_first, struct err *e);

/* Appends one record to a list that is being built in `out`; proto_list_of makes the field's value
 * from it. The buffer must live until the message with the list is encoded. */
int proto_list_add(const struct schema *record, const void *value, struct capbuf *out,
                   struct err *e);
struct proto_list proto_list_of(const struct capbuf *records, uint64_t count);

struct proto_iter {
    struct bytes rest;
    uint64_t left;
};
struct proto_iter proto_iter_of(struct proto_list list);
/* Decodes the next record into ret_value (record->size bytes); false at the end. The list must come
 * from proto_decode or proto_list_of. */
bool proto_list_next(struct proto_iter *it, const struct schema *record, void *ret_value);

/* Errors on the wire. */
void proto_error_from(const struct err *e, struct msg_error *ret_msg); /* text lies in *e */
void proto_error_to(const struct msg_error *msg, struct err *ret_e);
/* Writes an ERROR message into `room` and returns a view of it. Allocates nothing. open: see
 * MSG_ERROR. */
#define PROTO_ERROR_BYTES (PROTO_TEXT_MAX + 128u)
struct bytes proto_error_put(const struct err *e, bool open, uint8_t room[PROTO_ERROR_BYTES]);

#endif
