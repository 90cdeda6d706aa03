/*
 * A call: a request with its answer. The answer to an orphaned call may have made an object of the
 * daemon, which is freed again.
 *
 * Thread: under the client's lock. Never blocks.
 */
#ifndef CLIENT_OBJECTS_POST_H
#define CLIENT_OBJECTS_POST_H

#include "client/src/base/client.h"

enum call_flag { CALL_PLAIN = 0, CALL_SEQUENCED = 1 };

/*
 * The owner of a call.
 *
 *   waiting → done        the answer came, or the request failed: the caller destroys the call
 *   waiting → orphaned    the caller gave up, or needs no answer: the answer frees the call
 */
enum call_state { CALL_WAITING, CALL_DONE, CALL_ORPHANED };

struct call {
    struct request req;    /* first */
    enum call_state state; /* changed by call_step alone */
    struct message *reply; /* owned; NULL: it failed */
    struct err failed;
};

/* Makes a call and gives it its number; the caller sends it. NOMEM, LIMIT. */
int call_make(struct gpud_client *c, const struct schema *request, void *msg, enum call_flag flags,
              struct call **ret_call, struct err *e);
/* The step has to exist in the table. */
void call_step(struct call *call, enum call_state to);
void call_destroy(struct call *call);

/* Sends a sequenced request as an orphaned call. *ret_seq is its number. */
int client_post(struct gpud_client *c, const struct schema *request, void *msg, uint64_t *ret_seq,
                struct err *e);

#endif
