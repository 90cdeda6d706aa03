/*
 * Requests of a session that came before their turn, by number. The list owns them. Thread: the
 * loop's.
 */
#ifndef FRONT_MODEL_EARLY_H
#define FRONT_MODEL_EARLY_H

#include "daemon/front/model/session.h"

#define REORDER_MAX 256u                         /* early requests of a session */
#define EARLY_BYTES (UINT64_C(64) * 1024 * 1024) /* limit of their bytes */

/* Adds a request and owns it from then on. Of two requests with the same number, *ret_other gets
 * one back, which the caller owns: the older, unless that came by the socket and `r` by the ring.
 * NULL: no other. ERR_BUSY: more than `window` numbers ahead, `window` requests or EARLY_BYTES; the
 * caller keeps the request. */
int early_put(struct session *s, struct request *r, uint64_t seq, unsigned window,
              struct request **ret_other, struct err *e);
struct request *early_find(struct session *s, uint64_t seq); /* stays in the list; NULL: none */
struct request *early_take(struct session *s, uint64_t seq); /* the caller owns it; NULL: none */
struct request *early_drop(struct session *s); /* the first; the caller owns it; NULL: none */

/* The turn of its next request has come, and this turn of the loop has no room for that. list:
 * front->early_due. The oldest come first. */
void early_due_add(struct session **list, struct session *s);
void early_due_remove(struct session **list, struct session *s); /* not in it: nothing happens */

#endif
