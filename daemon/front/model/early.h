/*
 * Requests of a session that came before their turn. Thread: the loop's.
 */
#ifndef FRONT_MODEL_EARLY_H
#define FRONT_MODEL_EARLY_H

#include "daemon/front/model/session.h"

#define REORDER_MAX 256u                         /* early requests of a session */
#define EARLY_BYTES (UINT64_C(64) * 1024 * 1024) /* and their bytes */

/* Takes a request and puts it in its place. Of two with the same number one leaves, the caller's
 * from then on: the older, unless it came by the socket and the newer one by the ring. NULL: none
 * left. ERR_BUSY beyond `window` numbers or requests, or EARLY_BYTES: the caller
 * keeps the request. */
int early_put(struct session *s, struct request *r, uint64_t seq, unsigned window,
              struct request **ret_other, struct err *e);
struct request *early_find(struct session *s, uint64_t seq); /* NULL: not there; remains */
struct request *early_take(struct session *s, uint64_t seq); /* the caller's; NULL: not there */
struct request *early_drop(struct session *s); /* any, the caller's; NULL: none is left */

#endif
