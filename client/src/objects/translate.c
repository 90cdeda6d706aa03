#include "client/src/objects/translate.h"

#include "client/src/objects/program.h"

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

int translate_request(struct gpud_client *c, unsigned kind, struct capbuf *io_msg, struct err *e)
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
