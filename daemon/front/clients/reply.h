/*
 * Answers on their way out. An op's answer is kept until it is acknowledged; a plain request's is
 * not. Thread: the loop's.
 */
#ifndef FRONT_CLIENTS_REPLY_H
#define FRONT_CLIENTS_REPLY_H

#include "daemon/front/model/front.h"

/* Sends the answer if somebody waits for it, and keeps it; a loose op is gone afterwards. NULL:
 * nothing. */
void reply_answer(struct front *f, struct op *o, struct bytes reply);
void reply_answer_error(struct front *f, struct op *o, const struct err *e, struct bytes log);
/* Answers a request that has no op, where it came from. */
void reply_plain(struct front *f, const struct request *r, struct bytes reply);
/* The same with an error, and destroys it. */
void reply_error(struct front *f, struct request *r, const struct err *e);
/* Likewise for one that was not admitted: its number is as free as before. */
void reply_open(struct front *f, struct request *r, const struct err *e);
/* Nobody waits for the answer of that request any more; destroys it. */
void reply_none(struct front *f, struct request *r);
/* The op's answer goes where `r` came from; who waited for it before gets none. */
void reply_redirect(struct front *f, struct op *o, const struct request *r);
/* Nobody waits for the op's answer any more. */
void reply_forget(struct front *f, struct op *o);

#endif
