/*
 * Decodes an answer: the expected message, or the ERROR that came in its place. Decoded texts and
 * lists point into the message. Thread: any, no lock needed.
 */
#ifndef CLIENT_WIRE_REPLY_H
#define CLIENT_WIRE_REPLY_H

#include "proto/codec.h"
#include "proto/sp.h"

/* Decodes an answer as `reply`. An ERROR in its place becomes the error of this call. */
int reply_decode(const struct message *m, const struct schema *reply, void *ret_reply,
                 struct err *e);

/* The same, and decodes the first record of the answer's list of `record`; zeros if the list is
 * empty. */
int reply_decode_first(const struct message *m, const struct schema *reply, void *ret_reply,
                       const struct schema *record, void *ret_first, struct err *e);

#endif
