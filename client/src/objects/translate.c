#include "client/src/objects/translate.h"

#include "client/src/objects/handles.h"
#include "client/src/objects/program.h"

struct translation {
    const struct gpud_client *c;
    enum translate how;
    struct err *e;
};

static int translate_handle(const struct translation *t, enum object_kind kind, uint64_t *io_handle)
{
    const struct object *o = *io_handle != 0 ? t->c->objects : NULL;
    while (o != NULL && (o->kind != kind || o->daemon != *io_handle)) {
        o = o->next;
    }
    if (o != NULL && o->pending != 0) {
        *io_handle = o->pending;
    } else if (o != NULL && t->how == TRANSLATE_KNOWN) {
        return object_refuse(o, t->e);
    }
    return 0;
}

static int translate_arg(const struct translation *t, struct proto_arg *io_arg)
{
    if (io_arg->tag == ARG_ARENA) {
        return translate_handle(t, OBJECT_ARENA, &io_arg->handle);
    }
    bool check = io_arg->tag == ARG_BUFFER && t->how == TRANSLATE_KNOWN;
    return check ? buffer_check_daemon(t->c, io_arg->handle, t->e) : 0;
}

static int translate_args(const struct translation *t, struct proto_list *io_args,
                          struct capbuf *out)
{
    struct proto_arg arg;
    uint64_t count = 0;
    for (struct proto_iter it = proto_iter_of(*io_args); proto_list_next(&it, &schema_arg, &arg);) {
        int rc = translate_arg(t, &arg);
        rc = rc == 0 ? proto_list_add(&schema_arg, &arg, out, t->e) : rc;
        if (rc != 0) {
            return rc;
        }
        count++;
    }
    *io_args = proto_list_of(out, count);
    return 0;
}

static int translate_steps(const struct translation *t, struct proto_list *io_steps,
                           struct capbuf *out)
{
    struct proto_step step;
    struct capbuf args;
    uint64_t count = 0;
    for (struct proto_iter it = proto_iter_of(*io_steps);
         proto_list_next(&it, &schema_step, &step);) {
        capbuf_init(&args, PROTO_MESSAGE_MAX);
        int rc = translate_handle(t, OBJECT_KERNEL, &step.kernel);
        rc = rc == 0 ? translate_args(t, &step.args, &args) : rc;
        rc = rc == 0 ? proto_list_add(&schema_step, &step, out, t->e) : rc;
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

static int translate_submit(const struct translation *t, struct msg_submit *msg,
                            struct capbuf *steps, struct capbuf *bindings)
{
    int rc = translate_handle(t, OBJECT_PROGRAM, &msg->program);
    rc = rc == 0 ? translate_args(t, &msg->bindings, bindings) : rc;
    return rc == 0 ? translate_steps(t, &msg->steps, steps) : rc;
}

static int translate_fields(const struct translation *t, unsigned kind, union any_request *msg,
                            struct capbuf *steps, struct capbuf *bindings)
{
    const struct translation all = {t->c, TRANSLATE_ALL, t->e};
    switch (kind) {
    case MSG_KIND_SUBMIT:
        return translate_submit(t, &msg->submit, steps, bindings);
    case MSG_KIND_PROGRAM_CREATE:
        return translate_steps(t, &msg->program_create.steps, steps);
    case MSG_KIND_KERNEL_FIND:
        return translate_handle(t, OBJECT_MODULE, &msg->kernel_find.module);
    case MSG_KIND_ARENA_FREE:
        return translate_handle(&all, OBJECT_ARENA, &msg->arena_free.arena);
    case MSG_KIND_PROGRAM_FREE:
        return translate_handle(&all, OBJECT_PROGRAM, &msg->program_free.program);
    default:
        return translate_handle(&all, OBJECT_MODULE, &msg->module_unload.module);
    }
}

static bool names_objects(unsigned kind)
{
    return kind == MSG_KIND_SUBMIT || kind == MSG_KIND_PROGRAM_CREATE ||
           kind == MSG_KIND_PROGRAM_FREE || kind == MSG_KIND_MODULE_UNLOAD ||
           kind == MSG_KIND_KERNEL_FIND || kind == MSG_KIND_ARENA_FREE;
}

int translate_request(struct gpud_client *c, unsigned kind, enum translate how,
                      struct capbuf *io_msg, struct err *e)
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
        const struct translation t = {c, how, e};
        rc = translate_fields(&t, kind, &msg, &steps, &bindings);
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

void translate_programs(struct gpud_client *c)
{
    for (struct gpud_program *p = c->programs; p != NULL; p = p->next) {
        struct proto_list steps = proto_list_of(&p->steps, p->step_count);
        struct capbuf out;
        if (p->sealed) {
            continue;
        }
        capbuf_init(&out, PROTO_MESSAGE_MAX);
        struct err e = ERR_INIT;
        const struct translation t = {c, TRANSLATE_KNOWN, &e};
        if (translate_steps(&t, &steps, &out) == 0) {
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
