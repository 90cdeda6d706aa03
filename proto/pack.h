/*
 * Reads and writes the part of msgpack that the protocol uses. Reading checks every length against
 * the rest of the input; writing uses the shortest form. Internal to proto.
 *
 * A read function moves the cursor past a whole value, or not at all. None allocates.
 */
#ifndef PROTO_PACK_H
#define PROTO_PACK_H

#include <stdbool.h>

#include "common/bytes.h"

#define PACK_DEPTH_MAX 8 /* nesting of a value that is skipped */
#define PACK_NIL       0xc0

struct cursor {
    const uint8_t *at;
    const uint8_t *end;
};

/* Why a read failed. */
enum pack_problem {
    PACK_OK = 0,
    PACK_CUT,   /* the input ends inside the value */
    PACK_TYPE,  /* another type of value */
    PACK_RANGE, /* an integer that the requested type cannot hold */
    PACK_DEPTH, /* nested deeper than PACK_DEPTH_MAX */
};

enum pack_problem pack_read_uint(struct cursor *c, uint64_t *ret_value);
enum pack_problem pack_read_int(struct cursor *c, int64_t *ret_value);
enum pack_problem pack_read_text(struct cursor *c, struct bytes *ret_text);
enum pack_problem pack_read_bin(struct cursor *c, struct bytes *ret_bytes);
enum pack_problem pack_read_array(struct cursor *c, uint64_t *ret_count);
enum pack_problem pack_skip(struct cursor *c, uint64_t count); /* `count` values of any type */

/* false, and nothing is read, if the next value is not nil */
static inline bool pack_read_nil(struct cursor *c)
{
    bool nil = c->at != c->end && *c->at == PACK_NIL;
    c->at += nil;
    return nil;
}

/* false if `out` could not grow */
bool pack_uint(struct capbuf *out, uint64_t value);
bool pack_int(struct capbuf *out, int64_t value);
bool pack_text(struct capbuf *out, struct bytes text); /* at most UINT32_MAX bytes */
bool pack_bin(struct capbuf *out, struct bytes bytes); /* at most UINT32_MAX bytes */
bool pack_array(struct capbuf *out, uint64_t count);   /* at most UINT32_MAX */

#endif
