#include "client/src/session/restore.h"

#include <stdlib.h>

#include "client/src/base/events.h"
#include "client/src/base/state.h"
#include "client/src/link/send.h"
#include "client/src/objects/arena.h"
#include "client/src/objects/handles.h"
#include "client/src/objects/job.h"
#include "client/src/objects/translate.h"
#include "client/src/session/ready.h"
#include "client/src/wire/reply.h"
#include "common/clock.h"

/* Continues with the next stage when all answers of a stage have arrived. */
static void go_on(struct gpud_client *c);

/* ---- sending recipes ----------------------------------------------------------------------- */

struct restoring {
    struct request req;
    struct object *object;
};

static uint64_t made_handle(struct gpud_client *c, struct object *o, const struct message *m,
                            struct err *e)
{
    struct msg_arena arena;
    struct msg_module module;
    struct msg_kernel_found found;
    struct msg_program program;
    struct proto_kernel kernel = {0};
    struct proto_iter it;
    switch (o->kind) {
    case OBJECT_ARENA:
        return reply_decode(m, &schema_msg_arena, &arena, e) == 0 ? arena_restored(c, o, &arena, e)
                                                                  : 0;
    case OBJECT_MODULE:
        return reply_decode(m, &schema_msg_module, &module, e) == 0 ? module.module : 0;
    case OBJECT_PROGRAM:
        return reply_decode(m, &schema_msg_program, &program, e) == 0 ? program.program : 0;
    case OBJECT_KERNEL:
        if (reply_decode(m, &schema_msg_kernel_found, &found, e) != 0) {
            return 0;
        }
        it = proto_iter_of(found.kernels);
        (void)proto_list_next(&it, &schema_kernel, &kernel);
        return kernel.handle;
    case OBJECT_KINDS:
        break;
    }
    return 0;
}

/* Can the same request succeed later? CLOSED: the daemon is ending, and the connection ends before
 * the retry. NO_DEVICE is final: no device will open. */
static bool comes_again(const struct object *o, const struct err *failed)
{
    if (o->kind == OBJECT_ARENA) {
        return arena_comes_again(o, failed);
    }
    bool later = err_retriable(failed->code) || failed->code == ERR_CLOSED;
    return later && failed->code != ERR_NO_DEVICE;
}

static void unrestored(struct gpud_client *c, struct object *o, struct err *why)
{
    if (why->code == 0) {
        (void)err_set(why, ERR_PROTOCOL, "the daemon gave no handle");
    }
    object_set_unrestored(o, why);
    client_event(c, GPUD_EVENT_RESTORE_FAILED, (gpud_buffer){0}, why->text);
}

static void restore_answered(struct gpud_client *c, struct request *r, struct message *m,
                             const struct err *e)
{
    (void)e;
    struct restoring *restoring = (struct restoring *)r;
    struct object *o = restoring->object;
    struct err failed = ERR_INIT;
    o->pending = m != NULL ? made_handle(c, o, m, &failed) : 0;
    if (m != NULL && o->pending == 0 && comes_again(o, &failed)) {
        session_send_later(c, r, failed.retry_after_ns);
        return;
    }
    requests_retire(&c->requests, r);
    free(restoring);
    c->session.restores--;
    if (m == NULL) {
        return;
    }
    if (o->pending == 0) {
        unrestored(c, o, &failed);
    } else {
        object_set_unrestored(o, NULL);
    }
    if (c->session.restores == 0) {
        go_on(c);
    }
}

static int restore_send(struct gpud_client *c, struct object *o, struct err *e)
{
    struct restoring *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return err_set(e, ERR_NOMEM, "no memory to restore the session");
    }
    r->object = o;
    r->req.kind = o->recipe_kind;
    r->req.answered = restore_answered;
    r->req.own = true;
    capbuf_init(&r->req.msg, PROTO_MESSAGE_MAX);
    int rc = capbuf_append(&r->req.msg, o->recipe.data, o->recipe.size)
                 ? 0
                 : err_set(e, ERR_NOMEM, "no memory to restore the session");
    if (rc == 0) {
        rc = translate_request(c, o->recipe_kind, TRANSLATE_KNOWN, &r->req.msg, e);
    }
    if (rc == 0) {
        rc = requests_add(&c->requests, &r->req, false, e);
    }
    if (rc != 0) {
        request_finish(&r->req);
        free(r);
        return rc;
    }
    c->session.restores++;
    session_send_now(c, &r->req);
    return 0;
}

/* Sends the requests of one stage for the objects that are not restored yet; false: the stage is
 * complete. Stages follow object_kind. */
static bool restore_begin(struct gpud_client *c, int stage)
{
    for (struct object *o = c->objects; o != NULL; o = o->next) {
        if ((int)o->kind != stage || o->pending != 0 ||
            (stage == OBJECT_ARENA && !arena_restorable(o))) {
            continue;
        }
        struct err e = ERR_INIT;
        if (restore_send(c, o, &e) != 0) {
            unrestored(c, o, &e);
        }
        if (c->session.state != SESSION_RESTORE) {
            return false; /* the connection broke */
        }
    }
    return c->session.restores > 0;
}

/* ---- buffers ------------------------------------------------------------------------------- */

#define INQUIRIES_MAX 64u /* unanswered at a time */

struct inquiry {
    struct request req;
    uint64_t id; /* public */
};

static bool is_gone(int code)
{
    return code == ERR_STALE_HANDLE || code == ERR_BAD_HANDLE;
}

/* What became of the buffer, by the daemon's answer; NULL: it is there, or nobody knows. A session
 * that had opened a published buffer is over, so its buffer goes when no other session has it. */
static const char *loss_of(const struct session *s, const struct msg_buffer *reply,
                           const struct err *failed)
{
    if (failed->code == 0 && reply->state == GPUD_BUFFER_LOST) {
        return LOST_WITH_WORKER;
    }
    bool gone = failed->code == 0 ? s->anew : is_gone(failed->code);
    return failed->code == ERR_BUFFER_LOST ? LOST_WITH_DAEMON : gone ? LOST_WITH_SESSION : NULL;
}

static void inquiry_answered(struct gpud_client *c, struct request *r, struct message *m,
                             const struct err *e)
{
    (void)e;
    struct inquiry *q = (struct inquiry *)r;
    struct buffer *b = idmap_get(&c->buffers, q->id); /* NULL if the user has freed it */
    struct msg_buffer reply = {0};
    struct err failed = ERR_INIT;
    if (m != NULL) {
        (void)reply_decode(m, &schema_msg_buffer, &reply, &failed);
    }
    requests_retire(&c->requests, r);
    free(q);
    c->session.restores--;
    if (m == NULL) {
        return;
    }
    const char *why = loss_of(&c->session, &reply, &failed);
    if (why != NULL && b != NULL) {
        buffer_lost(c, b, why, "");
    }
    go_on(c);
}

/* Asks for one buffer. If memory for the request is out, a lost buffer is noticed at its next use.
 */
static void inquire(struct gpud_client *c, uint64_t id, const struct buffer *b)
{
    struct inquiry *q = calloc(1, sizeof *q);
    struct msg_buffer_info msg = {.handle = b->daemon};
    if (q == NULL) {
        return;
    }
    q->id = id;
    c->session.restores++;
    if (request_encode(&q->req, &schema_msg_buffer_info, &msg, NULL) != 0 ||
        session_ask(c, &q->req, inquiry_answered, NULL) != 0) {
        c->session.restores--;
        request_finish(&q->req);
        free(q);
    }
}

/* Asks the daemon for each buffer, at most INQUIRIES_MAX at a time, and reports the lost ones;
 * false: all were answered. Runs before the stages. */
static bool restore_buffers(struct gpud_client *c)
{
    struct session *s = &c->session;
    const struct buffer *b = NULL;
    uint64_t id = 0;
    while (s->restores < INQUIRIES_MAX && s->state == SESSION_RESTORE &&
           (b = idmap_next(&c->buffers, &s->restore_cursor, &id)) != NULL) {
        if (b->lost == NULL) {
            inquire(c, id, b);
        }
    }
    return s->restores > 0;
}

/* ---- the stages ---------------------------------------------------------------------------- */

/* After the last stage: the new handles replace the old ones, also in unanswered requests. */
static void restore_commit(struct gpud_client *c)
{
    struct err e = ERR_INIT;
    struct request *next;
    for (struct request *r = c->requests.sequenced.first; r != NULL; r = next) {
        next = r->next;
        uint64_t seq = r->seq;
        if (translate_request(c, r->kind, TRANSLATE_KNOWN, &r->msg, &e) != 0) {
            r->answered(c, r, NULL, &e);
            if (seq < c->session.reported_to) { /* HELLO reported the number as unanswered, so the
                                                   daemon waits for it */
                c->session.reported_to = seq;
            }
        }
    }
    /* recipes first: translation finds the objects by their old handles */
    translate_programs(c);
    for (struct object *o = c->objects; o != NULL; o = o->next) {
        if (translate_request(c, o->recipe_kind, TRANSLATE_ALL, &o->recipe, &e) != 0) {
            client_event(c, GPUD_EVENT_RESTORE_FAILED, (gpud_buffer){0}, e.text);
        }
    }
    for (struct object *o = c->objects; o != NULL; o = o->next) {
        if (o->pending != 0) {
            o->daemon = o->pending;
            o->pending = 0;
        } else if (o->kind == OBJECT_ARENA) {
            o->daemon = 0; /* plain memory from now on */
        }
    }
    c->session.epoch++;
}

static void go_on(struct gpud_client *c)
{
    struct session *s = &c->session;
    if (restore_buffers(c) || s->state != SESSION_RESTORE) {
        return;
    }
    while (s->restore_stage < OBJECT_KINDS) {
        if (restore_begin(c, s->restore_stage++)) {
            return;
        }
        if (s->state != SESSION_RESTORE) {
            return;
        }
    }
    restore_commit(c);
    s->restoring = s->anew = false;
    session_ready(c, s->reported_to, GPUD_EVENT_RESTARTED);
    arenas_free_vain(c);
}

/* Another daemon: objects that its predecessor has restored are restored again. */
static void restore_forget(struct gpud_client *c)
{
    for (struct object *o = c->objects; o != NULL; o = o->next) {
        o->pending = 0;
        if (o->kind == OBJECT_ARENA) {
            arena_forget_vain(o);
        }
    }
}

void restore_start(struct gpud_client *c, bool going_on)
{
    struct session *s = &c->session;
    if (!going_on) {
        restore_forget(c);
    }
    s->restoring = true;
    s->attempt_ns = NS_NEVER;
    s->lost_ns = NS_NEVER; /* this daemon answered; if it is lost, the time starts again */
    s->again_ns = NS_NEVER;
    s->events_seen = 0; /* each daemon numbers its events from the start */
    jobs_forget_ids(c); /* the answers to requests that are sent again bring new ids */
    session_step(s, SESSION_RESTORE);
    s->restore_stage = 0;
    s->restore_cursor = 0;
    go_on(c);
}
