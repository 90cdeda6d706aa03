/*
 * Answers on their way out. An op's answer is kept until it is acknowledged; a plain request's is
 * not. Thread: the loop's.
 */
#ifndef FRONT_REPLY_H
#define FRONT_REPLY_H

#include "daemon/front/front.h"

/* Sends the answer if somebody waits for it, and keeps it; a loose op is gone afterwards. NULL:
 * nothing. */
void reply_answer(struct front *f, struct op *o, struct bytes reply);
void reply_answer_error(struct front *f, struct op *o, const struct err *e, struct bytes log);
/* Answers a request that has no op, and destroys it. */
void reply_error(struct front *f, struct request *r, const struct err *e);

#endif
