#include "client/src/session/restore.h"

#include <stdlib.h>

#include "client/src/session/arena.h"
#include "client/src/session/events.h"
#include "client/src/session/handles.h"
#include "client/src/session/program.h"
#include "client/src/session/send.h"
#include "client/src/session/session.h"
#include "client/src/wire/reply.h"

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

/* It may succeed in a moment; a daemon that ends (CLOSED) will not answer then. No device will come
 * any more if the daemon says that there is none; an arena's claim is over with its answer. */
static bool comes_again(const struct object *o, const struct err *failed)
{
    bool later = err_retriable(failed->code) || failed->code == ERR_CLOSED;
    return later && failed->code != ERR_NO_DEVICE && o->kind != OBJECT_ARENA;
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
    requests_end(&c->requests, r);
    request_finish(r);
    free(restoring);
    c->session.restores--;
    if (m == NULL) {
        return;
    }
    if (o->pending == 0) {
        client_event(c, GPUD_EVENT_RESTORE_FAILED, (gpud_buffer){0}, failed.text);
    }
    if (c->session.restores == 0) {
        session_restored(c);
    }
}

static int restore_send(struct gpud_client *c, struct object *o, struct err *e)
{
    struct restoring *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return err_set(e, ERR_NOMEM, "restoring");
    }
    r->object = o;
    r->req.kind = o->recipe_kind;
    r->req.answered = restore_answered;
    r->req.own = true;
    capbuf_init(&r->req.msg, PROTO_MESSAGE_MAX);
    int rc = capbuf_append(&r->req.msg, o->recipe.data, o->recipe.size)
                 ? 0
                 : err_set(e, ERR_NOMEM, "restoring");
    if (rc == 0) {
        rc = restore_translate(c, o->recipe_kind, &r->req.msg, e);
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

void restore_forget(struct gpud_client *c)
{
    for (struct object *o = c->objects; o != NULL; o = o->next) {
        o->pending = 0;
    }
}

bool restore_begin(struct gpud_client *c, int stage)
{
    for (struct object *o = c->objects; o != NULL; o = o->next) {
        if ((int)o->kind != stage || o->pending != 0 ||
            (stage == OBJECT_ARENA && !arena_restorable(o))) {
            continue;
        }
        struct err e = ERR_INIT;
        if (restore_send(c, o, &e) != 0) {
            client_event(c, GPUD_EVENT_RESTORE_FAILED, (gpud_buffer){0}, e.text);
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
    return code == ERR_BUFFER_LOST || code == ERR_STALE_HANDLE || code == ERR_BAD_HANDLE;
}

static void inquiry_answered(struct gpud_client *c, struct request *r, struct message *m,
                             const struct err *e)
{
    (void)e;
    struct inquiry *q = (struct inquiry *)r;
    struct buffer *b = idmap_get(&c->buffers, q->id); /* it may be freed by now */
    struct msg_buffer told;
    struct err failed = ERR_INIT;
    bool gone = m != NULL && reply_decode(m, &schema_msg_buffer, &told, &failed) != 0 &&
                is_gone(failed.code);
    requests_end(&c->requests, r);
    request_finish(r);
    free(q);
    c->session.restores--;
    if (m == NULL) {
        return;
    }
    if (gone && b != NULL) {
        buffer_lost(c, b, failed.text);
    }
    session_restored(c);
}

/* What cannot be asked shows when it is used. */
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

bool restore_buffers(struct gpud_client *c)
{
    struct session *s = &c->session;
    const struct buffer *b = NULL;
    uint64_t id = 0;
    while (s->restores < INQUIRIES_MAX && s->state == SESSION_RESTORE &&
           (b = idmap_next(&c->buffers, &s->restore_cursor, &id)) != NULL) {
        if (!b->lost) {
            inquire(c, id, b);
        }
    }
    return s->restores > 0;
}

/* ---- new handles in old requests ----------------------------------------------------------- */

static uint64_t translated(const struct gpud_client *c, enum object_kind kind, uint64_t handle)
{
    for (const struct object *o = c->objects; handle != 0 && o != NULL; o = o->next) {
        if (o->kind == kind && o->daemon == handle && o->pending != 0) {
            return o->pending;
        }
    }
    return handle;
}

static int translate_args(const struct gpud_client *c, struct proto_list *io_args,
                          struct capbuf *out, struct err *e)
{
    struct proto_arg arg;
    uint64_t count = 0;
    for (struct proto_iter it = proto_iter_of(*io_args); proto_list_next(&it, &schema_arg, &arg);) {
        if (arg.tag == ARG_ARENA) {
            arg.handle = translated(c, OBJECT_ARENA, arg.handle);
        }
        int rc = proto_list_add(&schema_arg, &arg, out, e);
        if (rc != 0) {
            return rc;
        }
        count++;
    }
    *io_args = proto_list_of(out, count);
    return 0;
}

static int translate_steps(const struct gpud_client *c, struct proto_list *io_steps,
                           struct capbuf *out, struct err *e)
{
    struct proto_step step;
    struct capbuf args;
    uint64_t count = 0;
    for (struct proto_iter it = proto_iter_of(*io_steps);
         proto_list_next(&it, &schema_step, &step);) {
        step.kernel = translated(c, OBJECT_KERNEL, step.kernel);
        capbuf_init(&args, PROTO_MESSAGE_MAX);
        int rc = translate_args(c, &step.args, &args, e);
        rc = rc == 0 ? proto_list_add(&schema_step, &step, out, e) : rc;
        capbuf_finish(&args);
        if (rc != 0) {
            return rc;
        }
        count++;
    }
    *io_steps = proto_list_of(out, count);
    return 0;
}

union any_request {
    struct msg_submit submit;
    struct msg_program_create program_create;
    struct msg_program_free program_free;
    struct msg_module_unload module_unload;
    struct msg_kernel_find kernel_find;
    struct msg_arena_free arena_free;
};

static int translate_fields(const struct gpud_client *c, unsigned kind, union any_request *msg,
                            struct capbuf *steps, struct capbuf *bindings, struct err *e)
{
    int rc;
    switch (kind) {
    case MSG_KIND_SUBMIT:
        msg->submit.program = translated(c, OBJECT_PROGRAM, msg->submit.program);
        rc = translate_args(c, &msg->submit.bindings, bindings, e);
        return rc == 0 ? translate_steps(c, &msg->submit.steps, steps, e) : rc;
    case MSG_KIND_ARENA_FREE:
        msg->arena_free.arena = translated(c, OBJECT_ARENA, msg->arena_free.arena);
        return 0;
    case MSG_KIND_PROGRAM_CREATE:
        return translate_steps(c, &msg->program_create.steps, steps, e);
    case MSG_KIND_PROGRAM_FREE:
        msg->program_free.program = translated(c, OBJECT_PROGRAM, msg->program_free.program);
        return 0;
    case MSG_KIND_MODULE_UNLOAD:
        msg->module_unload.module = translated(c, OBJECT_MODULE, msg->module_unload.module);
        return 0;
    default:
        msg->kernel_find.module = translated(c, OBJECT_MODULE, msg->kernel_find.module);
        return 0;
    }
}

static bool names_objects(unsigned kind)
{
    return kind == MSG_KIND_SUBMIT || kind == MSG_KIND_PROGRAM_CREATE ||
           kind == MSG_KIND_PROGRAM_FREE || kind == MSG_KIND_MODULE_UNLOAD ||
           kind == MSG_KIND_KERNEL_FIND || kind == MSG_KIND_ARENA_FREE;
}

int restore_translate(struct gpud_client *c, unsigned kind, struct capbuf *io_msg, struct err *e)
{
    if (!names_objects(kind)) {
        return 0;
    }
    const struct schema *schema = schema_find(kind);
    union any_request msg;
    struct capbuf steps;
    struct capbuf bindings;
    struct capbuf out;
    capbuf_init(&steps, PROTO_MESSAGE_MAX);
    capbuf_init(&bindings, PROTO_MESSAGE_MAX);
    capbuf_init(&out, PROTO_MESSAGE_MAX);
    int rc = proto_decode(schema, capbuf_view(io_msg), &msg, e);
    if (rc == 0) {
        rc = translate_fields(c, kind, &msg, &steps, &bindings, e);
    }
    if (rc == 0) {
        rc = proto_encode(schema, &msg, &out, e);
    }
    capbuf_finish(&steps);
    capbuf_finish(&bindings);
    if (rc != 0) {
        capbuf_finish(&out);
        return rc;
    }
    capbuf_finish(io_msg);
    *io_msg = out;
    return 0;
}

/* Those under construction: their steps name kernels and arenas already. */
static void translate_programs(struct gpud_client *c)
{
    for (struct gpud_program *p = c->programs; p != NULL; p = p->next) {
        struct proto_list steps = proto_list_of(&p->steps, p->step_count);
        struct capbuf out;
        if (p->sealed) {
            continue;
        }
        capbuf_init(&out, PROTO_MESSAGE_MAX);
        struct err e = ERR_INIT;
        if (translate_steps(c, &steps, &out, &e) == 0) {
            capbuf_finish(&p->steps);
            p->steps = out;
            continue;
        }
        capbuf_finish(&out);
        if (p->failed.code == 0) {
            p->failed = e;
        }
    }
}

void restore_commit(struct gpud_client *c)
{
    struct err e = ERR_INIT;
    struct request *next;
    for (struct request *r = c->requests.sequenced.first; r != NULL; r = next) {
        next = r->next;
        uint64_t seq = r->seq;
        if (restore_translate(c, r->kind, &r->msg, &e) != 0) {
            r->answered(c, r, NULL, &e);
            if (seq < c->session.told_to) { /* the daemon was told of it, and waits for it */
                c->session.told_to = seq;
            }
        }
    }
    /* recipes before handles: they are found by the old ones */
    translate_programs(c);
    for (struct object *o = c->objects; o != NULL; o = o->next) {
        if (restore_translate(c, o->recipe_kind, &o->recipe, &e) != 0) {
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
