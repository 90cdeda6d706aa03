/*
 * Answers: the message that was expected, or the ERROR that came in its place. Thread: any, no lock
 * needed; the texts and lists of what is decoded lie in the message.
 */
#ifndef CLIENT_WIRE_REPLY_H
#define CLIENT_WIRE_REPLY_H

#include "proto/codec.h"
#include "proto/sp.h"

/* Checks an answer: decodes it as `reply`, or makes its ERROR the error. */
int reply_decode(const struct message *m, const struct schema *reply, void *ret_reply,
                 struct err *e);

/* The same with the first record of its list of such, where it has one (else zeros). */
int reply_decode_first(const struct message *m, const struct schema *reply, void *ret_reply,
                       const struct schema *record, void *ret_first, struct err *e);

#endif
