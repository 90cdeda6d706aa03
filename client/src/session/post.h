/*
 * A request with its answer, and requests whose answer nobody needs, or nobody any more. What such
 * an answer made is given up again.
 *
 * Thread: under the client's lock. Never blocks.
 */
#ifndef CLIENT_SESSION_POST_H
#define CLIENT_SESSION_POST_H

#include "client/src/session/client.h"

enum call_flag { CALL_PLAIN = 0, CALL_SEQUENCED = 1 };

struct call {
    struct request req; /* first */
    bool done;
    bool orphan;           /* its caller went, or waits for nothing: it frees itself */
    struct message *reply; /* owned; NULL: it failed */
    struct err failed;
};

/* Makes one with its number, to be sent. The caller sets `orphan` when it goes before the answer;
 * else it waits for `done` and destroys it. NOMEM, LIMIT. */
int call_make(struct gpud_client *c, const struct schema *request, void *msg, enum call_flag flags,
              struct call **ret_call, struct err *e);
void call_destroy(struct call *call);

/* Sends a sequenced request whose answer nobody needs. */
int client_post(struct gpud_client *c, const struct schema *request, void *msg, uint64_t *ret_seq,
                struct err *e);

#endif
