#include "client/src/session/call.h"

#include <stdlib.h>

#include "client/src/link/route.h"
#include "client/src/objects/post.h"
#include "client/src/session/wait.h"
#include "client/src/wire/reply.h"
#include "common/clock.h"

uint64_t client_deadline(const struct gpud_client *c)
{
    return ns_add(clock_now_ns(), c->timeout_ns);
}

uint64_t client_sooner(uint64_t deadline_ns, uint64_t patience_ns)
{
    uint64_t soon_ns = ns_add(clock_now_ns(), patience_ns);
    return soon_ns < deadline_ns ? soon_ns : deadline_ns;
}

static bool call_done(void *arg)
{
    return ((const struct call *)arg)->state == CALL_DONE;
}

static int exchange(struct gpud_client *c, uint64_t deadline_ns, const struct schema *request,
                    void *msg, enum call_flag flags, struct message **ret_message, struct err *e)
{
    struct call *call = NULL;
    int rc = call_make(c, request, msg, flags, &call, e);
    if (rc != 0) {
        return rc;
    }
    session_send(c, &call->req);
    rc = client_wait(c, call_done, call, deadline_ns, e);
    if (call->state == CALL_WAITING) {
        call_step(call, CALL_ORPHANED);
        return rc;
    }
    if (call->reply != NULL) {
        *ret_message = message_ref(call->reply);
        rc = 0;
    } else {
        *e = call->failed;
        rc = call->failed.code;
    }
    call_destroy(call);
    return rc;
}

int client_exchange(struct gpud_client *c, const struct schema *request, void *msg,
                    enum call_flag flags, struct message **ret_message, struct err *e)
{
    return exchange(c, client_deadline(c), request, msg, flags, ret_message, e);
}

int client_call_until(struct gpud_client *c, uint64_t deadline_ns, const struct schema *request,
                      void *msg, enum call_flag flags, const struct schema *reply, void *ret_reply,
                      struct message **ret_message, struct err *e)
{
    struct message *m = NULL;
    int rc = exchange(c, deadline_ns, request, msg, flags, &m, e);
    if (rc == 0) {
        rc = reply_decode(m, reply, ret_reply, e);
        if (rc == 0) {
            *ret_message = m;
        } else {
            message_unref(m);
        }
    }
    return rc;
}

int client_call(struct gpud_client *c, const struct schema *request, void *msg,
                enum call_flag flags, const struct schema *reply, void *ret_reply,
                struct message **ret_message, struct err *e)
{
    return client_call_until(c, client_deadline(c), request, msg, flags, reply, ret_reply,
                             ret_message, e);
}

int client_call_done(struct gpud_client *c, const struct schema *request, void *msg,
                     enum call_flag flags, const struct schema *reply, struct err *e)
{
    struct message *m = NULL;
    int rc = client_exchange(c, request, msg, flags, &m, e);
    if (rc == 0) {
        union {
            struct msg_done done;
            struct msg_buffer buffer;
        } fields;
        rc = reply_decode(m, reply, &fields, e);
        message_unref(m);
    }
    return rc;
}

int client_may_kill(const struct gpud_client *c, struct err *e)
{
    return c->session.minor >= PROTO_MINOR_KILL
               ? 0
               : err_set(e, ERR_UNSUPPORTED,
                         "the daemon is older than this library and cannot end a job's worker");
}
