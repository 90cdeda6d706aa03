#include "client/src/api/program.h"

#include "client/src/api/args.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/src/api/args.h"
#include "client/src/base/enter.h"
#include "client/src/base/error.h"
#include "client/src/base/text.h"
#include "client/src/objects/objects.h"
#include "client/src/objects/post.h"
#include "client/src/session/call.h"
#include "common/shape.h"
#include "common/utf8.h"

_Static_assert((int)GPUD_PARAM_DATA == (int)PARAM_DATA, "parameter kinds");

static void lists_finish(struct gpud_program *p)
{
    capbuf_finish(&p->params);
    capbuf_finish(&p->temps);
    capbuf_finish(&p->steps);
}

static void program_destroy(struct object *o)
{
    struct gpud_program *p = (struct gpud_program *)o;
    object_finish(o);
    lists_finish(p);
    free(p->ranges);
    free(p);
}

static void programs_unlink(struct gpud_client *c, struct gpud_program *p)
{
    if (p->prev != NULL) {
        p->prev->next = p->next;
    } else {
        c->programs = p->next;
    }
    if (p->next != NULL) {
        p->next->prev = p->prev;
    }
}

void programs_finish(struct gpud_client *c)
{
    struct gpud_program *next;
    for (struct gpud_program *p = c->programs; p != NULL; p = next) {
        next = p->next;
        p->client = NULL;
        if (p->sealed) {
            object_unlink(c, &p->object);
        }
        if (p->abandoned) {
            program_destroy(&p->object);
        }
    }
    c->programs = NULL;
}

int gpud_program_create(gpud_client *client, const char *name, gpud_program **ret_program)
{
    struct err e = ERR_INIT;
    int rc = client_enter(client, &e);
    if (rc != 0) {
        return error_report(rc, &e);
    }
    struct gpud_program *p = calloc(1, sizeof *p);
    if (p == NULL || ret_program == NULL) {
        rc = err_set(&e, p == NULL ? ERR_NOMEM : ERR_INVALID, "program");
        free(p);
    } else {
        p->client = client;
        p->object.kind = OBJECT_PROGRAM;
        p->object.destroy = program_destroy;
        p->failed = ERR_INIT;
        text_copy(p->name, sizeof p->name, bytes_str(name));
        capbuf_init(&p->params, PROTO_MESSAGE_MAX);
        capbuf_init(&p->temps, PROTO_MESSAGE_MAX);
        capbuf_init(&p->steps, PROTO_MESSAGE_MAX);
        p->next = client->programs;
        if (p->next != NULL) {
            p->next->prev = p;
        }
        client->programs = p;
        *ret_program = p;
    }
    client_leave(client);
    return error_report(rc, &e);
}

/* ---- building ------------------------------------------------------------------------------ */

/* Locks the client if the program can still be changed. Keeps the program's first error. */
static int build_enter(struct gpud_program *p, struct err *e)
{
    if (p == NULL || p->client == NULL) {
        return err_set(e, p == NULL ? ERR_INVALID : ERR_CLOSED, "program");
    }
    int rc = client_enter(p->client, e);
    if (rc == 0 && p->sealed) {
        client_leave(p->client);
        rc = err_set(e, ERR_STATE, "the program is sealed");
    }
    return rc;
}

static int build_leave(struct gpud_program *p, int rc, struct err *e)
{
    if (rc < 0 && p->failed.code == 0) {
        p->failed = *e;
        p->failed.code = rc;
    }
    client_leave(p->client);
    return error_report(rc, e);
}

static int param_add(struct gpud_program *p, const char *name, int kind, gpud_shape shape,
                     struct err *e)
{
    if (p->param_count == PROTO_PARAMS_MAX) {
        return err_set(e, ERR_LIMIT, "a program has at most %u parameters", PROTO_PARAMS_MAX);
    }
    if (kind < GPUD_PARAM_BUFFER || kind > GPUD_PARAM_DATA) {
        return err_set(e, ERR_INVALID, "unknown kind of parameter: %d", kind);
    }
    struct proto_param param = {
        .name = bytes_str(name),
        .kind = (uint64_t)kind,
        .dtype = shape.dtype,
        .ndim = shape.ndim,
        .d0 = shape.dim[0],
        .d1 = shape.dim[1],
        .d2 = shape.dim[2],
        .d3 = shape.dim[3],
    };
    if (!utf8_valid(param.name)) {
        return err_set(e, ERR_INVALID, "parameter %u: its name is not UTF-8", p->param_count);
    }
    int rc = proto_list_add(&schema_param, &param, &p->params, e);
    if (rc == 0) {
        p->param_kind[p->param_count++] = (uint8_t)kind;
    }
    return rc;
}

gpud_arg gpud_program_param(gpud_program *program, const char *name, int kind, gpud_shape shape)
{
    struct err e = ERR_INIT;
    gpud_arg arg = {.kind = ARG_PARAM, .dtype = shape.dtype, .count = GPUD_REST};
    int rc = build_enter(program, &e);
    if (rc != 0) {
        (void)error_report(rc, &e);
        return arg;
    }
    arg.handle = program->param_count;
    rc = param_add(program, name, kind, shape, &e);
    (void)build_leave(program, rc, &e);
    return arg;
}

gpud_arg gpud_program_temp(gpud_program *program, gpud_shape shape)
{
    struct err e = ERR_INIT;
    gpud_arg arg = {.kind = ARG_TEMP, .dtype = shape.dtype, .count = GPUD_REST};
    int rc = build_enter(program, &e);
    if (rc != 0) {
        (void)error_report(rc, &e);
        return arg;
    }
    struct proto_temp temp = {
        .dtype = shape.dtype,
        .ndim = shape.ndim,
        .d0 = shape.dim[0],
        .d1 = shape.dim[1],
        .d2 = shape.dim[2],
        .d3 = shape.dim[3],
    };
    arg.handle = program->temp_count;
    if (program->temp_count == PROTO_TEMPS_MAX) {
        rc = err_set(&e, ERR_LIMIT, "a program has at most %u temporaries", PROTO_TEMPS_MAX);
    } else {
        rc = proto_list_add(&schema_temp, &temp, &program->temps, &e);
        program->temp_count += rc == 0 ? 1 : 0;
    }
    (void)build_leave(program, rc, &e);
    return arg;
}

static int step_room(const struct gpud_program *p, struct err *e)
{
    return p->step_count < PROTO_STEPS_MAX
               ? 0
               : err_set(e, ERR_LIMIT, "a program has at most %u steps", PROTO_STEPS_MAX);
}

/* Returns the index of the added step, or the error with that index. */
static int step_result(struct gpud_program *p, int rc, struct err *e)
{
    if (rc == 0) {
        rc = (int)p->step_count++;
    } else {
        (void)err_wrap(e, "step %u", p->step_count);
        e->step = (int)p->step_count;
    }
    return build_leave(p, rc, e);
}

int gpud_program_launch(gpud_program *program, gpud_kernel kernel, const gpud_arg *args,
                        uint32_t count, const gpud_grid *grid)
{
    struct err e = ERR_INIT;
    int rc = build_enter(program, &e);
    if (rc != 0) {
        return error_report(rc, &e);
    }
    rc = step_room(program, &e);
    if (rc == 0) {
        rc = step_add_launch(program->client, kernel, args, count, grid, NULL, &program->steps, &e);
    }
    return step_result(program, rc, &e);
}

static int step_add_two(struct gpud_program *p, int op, const gpud_arg *to, const gpud_arg *from,
                        struct err *e)
{
    struct proto_step step = {.op = (uint64_t)op};
    struct proto_arg wire[2];
    uint32_t count = 0;
    int rc = step_room(p, e);
    if (rc == 0 && to != NULL) {
        rc = arg_encode(p->client, to, GPUD_OUT, NULL, 0, &wire[count++], e);
    }
    if (rc == 0 && from != NULL) {
        bool array = from->kind != ARG_SCALAR;
        rc = arg_encode(p->client, from, array ? GPUD_IN : 0, NULL, 0, &wire[count++], e);
    }
    return rc == 0 ? step_add(&step, wire, count, &p->steps, e) : rc;
}

static int step_two(gpud_program *p, int op, const gpud_arg *to, const gpud_arg *from)
{
    struct err e = ERR_INIT;
    int rc = build_enter(p, &e);
    if (rc != 0) {
        return error_report(rc, &e);
    }
    return step_result(p, step_add_two(p, op, to, from, &e), &e);
}

int gpud_program_write(gpud_program *program, gpud_arg to, gpud_arg from)
{
    return step_two(program, OP_WRITE, &to, &from);
}

int gpud_program_copy(gpud_program *program, gpud_arg to, gpud_arg from)
{
    return step_two(program, OP_COPY, &to, &from);
}

int gpud_program_fill(gpud_program *program, gpud_arg to, gpud_arg scalar)
{
    return step_two(program, OP_FILL, &to, &scalar);
}

int gpud_program_read(gpud_program *program, gpud_arg from)
{
    return step_two(program, OP_READ, NULL, &from);
}

static int range_add(struct gpud_program *p, const gpud_arg *to, struct err *e)
{
    struct host_range *grown = realloc(p->ranges, (p->range_count + 1) * sizeof *grown);
    if (grown == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a program");
    }
    p->ranges = grown;
    p->ranges[p->range_count++] = (struct host_range){.data = to->data, .bytes = to->bytes};
    return 0;
}

static int step_add_read_to(struct gpud_program *p, const gpud_arg *to, const gpud_arg *from,
                            struct err *e)
{
    struct proto_step step = {.op = OP_READ};
    struct proto_arg wire[2];
    int rc = step_room(p, e);
    if (rc == 0) {
        rc = arg_encode(p->client, from, GPUD_IN, NULL, 0, &wire[0], e);
    }
    if (rc == 0) {
        rc = to->kind == ARG_PARAM ? arg_encode(p->client, to, GPUD_OUT, NULL, 0, &wire[1], e)
                                   : arg_encode_arena(p->client, to, GPUD_OUT, &wire[1], e);
    }
    if (rc == 0 && to->kind != ARG_PARAM) {
        rc = range_add(p, to, e);
    }
    return rc == 0 ? step_add(&step, wire, 2, &p->steps, e) : rc;
}

int gpud_program_read_to(gpud_program *program, gpud_arg to, gpud_arg from)
{
    struct err e = ERR_INIT;
    int rc = build_enter(program, &e);
    if (rc != 0) {
        return error_report(rc, &e);
    }
    return step_result(program, step_add_read_to(program, &to, &from, &e), &e);
}

/* ---- sealing ------------------------------------------------------------------------------- */

/* Sends PROGRAM_CREATE and keeps the message as the recipe. */
static int create(struct gpud_client *c, struct gpud_program *p, uint64_t *ret_daemon,
                  struct capbuf *ret_recipe, struct err *e)
{
    struct msg_program_create msg = {
        .seq = 1,
        .ack = 1,
        .name = bytes_str(p->name),
        .params = proto_list_of(&p->params, p->param_count),
        .temps = proto_list_of(&p->temps, p->temp_count),
        .steps = proto_list_of(&p->steps, p->step_count),
    };
    struct msg_program reply;
    struct message *m = NULL;
    struct capbuf recipe;
    capbuf_init(&recipe, PROTO_MESSAGE_MAX);
    int rc = proto_encode(&schema_msg_program_create, &msg, &recipe, e);
    if (rc == 0) {
        rc = client_call(c, &schema_msg_program_create, &msg, CALL_SEQUENCED, &schema_msg_program,
                         &reply, &m, e);
    }
    if (rc != 0) {
        capbuf_finish(&recipe);
        return rc;
    }
    *ret_daemon = reply.program;
    *ret_recipe = recipe;
    message_unref(m);
    return 0;
}

/* If the daemon restarts meanwhile, the answer may be of either daemon. The program is then sent
 * once more, with the steps that restore_commit has translated. */
static int create_in_one_life(struct gpud_client *c, struct gpud_program *p, uint64_t *ret_daemon,
                              struct capbuf *ret_recipe, struct err *e)
{
    for (;;) {
        uint64_t epoch = c->session.epoch;
        int rc = p->failed.code;
        if (rc != 0) {
            *e = p->failed;
        } else {
            rc = create(c, p, ret_daemon, ret_recipe, e);
        }
        if (rc != 0 || epoch == c->session.epoch) {
            return rc;
        }
        struct msg_program_free msg = {.program = *ret_daemon};
        uint64_t seq = 0;
        capbuf_finish(ret_recipe);
        (void)client_post(c, &schema_msg_program_free, &msg, &seq, NULL);
    }
}

static int seal(struct gpud_client *c, struct gpud_program *p, struct err *e)
{
    uint64_t daemon = 0;
    struct capbuf recipe;
    int rc = create_in_one_life(c, p, &daemon, &recipe, e);
    if (rc != 0) {
        return rc;
    }
    p->object.daemon = daemon;
    p->object.recipe = recipe;
    p->object.recipe_kind = MSG_KIND_PROGRAM_CREATE;
    p->sealed = true;
    object_link(c, &p->object);
    lists_finish(p);
    return 0;
}

int gpud_program_seal(gpud_program *program)
{
    struct err e = ERR_INIT;
    int rc = build_enter(program, &e);
    if (rc != 0) {
        return error_report(rc, &e);
    }
    rc = seal(program->client, program, &e);
    if (rc != 0 && program->name[0] != '\0') {
        (void)err_wrap(&e, "program %s", program->name);
    }
    client_leave(program->client);
    return error_report(rc, &e);
}

/* Frees the program at the daemon; the struct is freed when that request is answered. */
static void release(struct gpud_client *c, struct gpud_program *program)
{
    struct msg_program_free msg = {.program = program->object.daemon};
    struct err e = ERR_INIT;
    uint64_t seq = 0;
    if (client_post(c, &schema_msg_program_free, &msg, &seq, &e) != 0) {
        seq = requests_lowest(&c->requests); /* the daemon frees it with the session */
    }
    program->client = NULL;
    object_give_up(c, &program->object, seq);
}

void gpud_program_free(gpud_program *program)
{
    if (program == NULL) {
        return;
    }
    struct gpud_client *c = program->client;
    if (c == NULL) {
        program_destroy(&program->object);
        return;
    }
    if (!origin_here(&c->origin)) {
        program->abandoned = true; /* lists may be inconsistent here: gpud_close frees it */
        return;
    }
    (void)pthread_mutex_lock(&c->lock); /* also while it closes: callbacks run then */
    programs_unlink(c, program);
    if (program->sealed && !c->closing) {
        release(c, program);
    } else {
        if (program->sealed) {
            object_unlink(c, &program->object);
        }
        program_destroy(&program->object);
    }
    client_leave(c);
}
