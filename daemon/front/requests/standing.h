/*
 * A client's standing: hello, the order of its requests, what happens when its connection breaks
 * and when it ends for good. Thread: the loop's.
 */
#ifndef FRONT_REQUESTS_STANDING_H
#define FRONT_REQUESTS_STANDING_H

#include "daemon/front/model/front.h"

#define KEEPERS_SPARE                                                                              \
    16u /* sessions, and connections, of administrators over what others may have */

/* HELLO: finds or makes the session and ties the connection to it. Answers into `out`. */
int standing_hello(struct front *f, const struct request *r, struct capbuf *out,
                   struct session **ret_session, struct err *e);
void standing_disconnected(struct front *f, uint32_t pipe);
/* Ends a session: buffers, modules and programs are dropped, its jobs cancelled: what has begun of
 * them runs on. Those that were submitted to outlive it do. */
void standing_end(struct front *f, struct session *s);
/* Goes on with those whose end began, as far as this turn has units for. */
void standing_end_some(struct front *f);
/* The same when its process has ended; its connection is closed, if there is one. */
void standing_process_ended(struct front *f, struct session *s);
/* As if it had, and all of its jobs are cancelled. */
void standing_kill(struct front *f, struct session *s);
/* Ends what lingered long enough, answers WAITs; says when the next is due. */
void standing_watch(struct front *f, uint64_t now_ns);

#endif
