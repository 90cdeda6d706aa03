#include "client/src/objects/post.h"

#include <stdlib.h>

#include "client/src/link/route.h"
#include "client/src/objects/objects.h"
#include "client/src/wire/reply.h"
#include "common/steps.h"

void call_step(struct call *call, enum call_state to)
{
    static const unsigned steps[] = {
        [CALL_WAITING] = STEP_TO(CALL_DONE) | STEP_TO(CALL_ORPHANED),
        [CALL_DONE] = 0,
        [CALL_ORPHANED] = 0,
    };
    step_assert(steps, call->state, to);
    call->state = to;
}

void call_destroy(struct call *call)
{
    message_unref(call->reply);
    request_finish(&call->req);
    free(call);
}

/* Frees the object that the answer to an orphaned call made. */
static void orphan_free(struct gpud_client *c, unsigned request_kind, const struct message *m)
{
    struct msg_buffer buffer;
    struct msg_module module;
    struct msg_program program;
    struct msg_arena arena;
    uint64_t seq = 0;
    if (c->closing) {
        return;
    }
    switch (request_kind) {
    case MSG_KIND_BUFFER_CREATE:
    case MSG_KIND_BUFFER_OPEN:
        if (reply_decode(m, &schema_msg_buffer, &buffer, &ERR_INIT) == 0) {
            struct msg_buffer_free msg = {.handle = buffer.handle};
            (void)client_post(c, &schema_msg_buffer_free, &msg, &seq, NULL);
        }
        break;
    case MSG_KIND_MODULE_LOAD:
        if (reply_decode(m, &schema_msg_module, &module, &ERR_INIT) == 0) {
            struct msg_module_unload msg = {.module = module.module};
            (void)client_post(c, &schema_msg_module_unload, &msg, &seq, NULL);
        }
        break;
    case MSG_KIND_PROGRAM_CREATE:
        if (reply_decode(m, &schema_msg_program, &program, &ERR_INIT) == 0) {
            struct msg_program_free msg = {.program = program.program};
            (void)client_post(c, &schema_msg_program_free, &msg, &seq, NULL);
        }
        break;
    case MSG_KIND_ARENA_CREATE:
        if (reply_decode(m, &schema_msg_arena, &arena, &ERR_INIT) == 0) {
            struct msg_arena_free msg = {.arena = arena.arena};
            (void)client_post(c, &schema_msg_arena_free, &msg, &seq, NULL);
        }
        break;
    default:
        break;
    }
}

static void call_answered(struct gpud_client *c, struct request *r, struct message *m,
                          const struct err *e)
{
    struct call *call = (struct call *)r;
    requests_end(&c->requests, r);
    objects_reap(c);
    if (call->state == CALL_ORPHANED) {
        if (m != NULL) {
            orphan_free(c, call->req.kind, m);
        }
        call_destroy(call);
        return;
    }
    call_step(call, CALL_DONE);
    if (m != NULL) {
        call->reply = message_ref(m);
    } else {
        call->failed = *e;
    }
}

int call_make(struct gpud_client *c, const struct schema *request, void *msg, enum call_flag flags,
              struct call **ret_call, struct err *e)
{
    struct call *call = calloc(1, sizeof *call);
    if (call == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a request");
    }
    call->req.answered = call_answered;
    int rc = request_encode(&call->req, request, msg, e);
    if (rc == 0) {
        rc = requests_add(&c->requests, &call->req, (flags & CALL_SEQUENCED) != 0, e);
    }
    if (rc != 0) {
        call_destroy(call);
        return rc;
    }
    *ret_call = call;
    return 0;
}

int client_post(struct gpud_client *c, const struct schema *request, void *msg, uint64_t *ret_seq,
                struct err *e)
{
    struct call *call = NULL;
    int rc = call_make(c, request, msg, CALL_SEQUENCED, &call, e);
    if (rc == 0) {
        call_step(call, CALL_ORPHANED);
        *ret_seq = call->req.seq;
        session_send(c, &call->req);
    }
    return rc;
}
