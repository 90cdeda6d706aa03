/*
 * Answers, sent where their requests came from: over the socket or by the ring. The answer of an op
 * is kept until it is acknowledged; the answer of a request without an op is not. Thread: the
 * loop's.
 */
#ifndef FRONT_CLIENTS_REPLY_H
#define FRONT_CLIENTS_REPLY_H

#include "daemon/front/model/front.h"

/* Sends the answer if its client has a connection, and keeps it. Destroys an op that has no number,
 * or whose number is acknowledged. o NULL: does nothing. */
void reply_answer(struct front *f, struct op *o, struct bytes reply);
void reply_answer_error(struct front *f, struct op *o, const struct err *e, struct bytes log);
/* Answers a request that has no op. */
void reply_plain(struct front *f, const struct request *r, struct bytes reply);
/* Answers a request without an op with an error, and destroys it. */
void reply_error(struct front *f, struct request *r, const struct err *e);
/* The same for a request that was not admitted: its number may be used again. */
void reply_open(struct front *f, struct request *r, const struct err *e);
/* Destroys a request that gets no answer. */
void reply_none(struct front *f, struct request *r);
/* Sends the op's answer where `r` came from, instead of where the op's earlier request came
 * from. */
void reply_redirect(struct front *f, struct op *o, const struct request *r);
/* Does not send the op's answer; the client asks again. */
void reply_forget(struct front *f, struct op *o);

#endif
