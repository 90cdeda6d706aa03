/* Ways to start a job. */
#include <stdlib.h>
#include <string.h>

#include "client/src/api/args.h"
#include "client/src/api/copy.h"
#include "client/src/base/enter.h"
#include "client/src/base/error.h"
#include "client/src/objects/arena.h"
#include "client/src/objects/handles.h"
#include "client/src/objects/job.h"
#include "client/src/objects/program.h"
#include "client/src/session/arena_make.h"
#include "client/src/session/call.h"
#include "client/src/session/job_wait.h"
#include "common/clock.h"

static int bindings_encode(struct gpud_client *c, const struct gpud_program *p,
                           const gpud_arg *args, struct host_uses *uses, struct capbuf *out,
                           struct err *e)
{
    int rc = 0;
    for (uint32_t i = 0; i < p->param_count && rc == 0; i++) {
        static const uint32_t kinds[] = {
            [GPUD_PARAM_BUFFER] = ARG_BUFFER,
            [GPUD_PARAM_SCALAR] = ARG_SCALAR,
            [GPUD_PARAM_DATA] = ARG_INLINE,
        };
        struct proto_arg wire;
        if (args[i].kind != kinds[p->param_kind[i]]) {
            rc = err_set(e, ERR_ARG_TYPE, "not of the kind that the program declares");
        } else if (args[i].kind == ARG_INLINE && (args[i].access & GPUD_OUT) != 0 &&
                   arena_at(c, args[i].data, args[i].bytes) == NULL) {
            rc = err_set(e, ERR_ARG_ACCESS,
                         "a program writes to memory of gpud_host_alloc only; over tcp and from "
                         "another container it is not shared with the daemon");
        } else {
            rc = arg_encode(c, &args[i], args[i].kind == ARG_INLINE ? GPUD_IN : 0, uses, i, &wire,
                            e);
        }
        if (rc == 0) {
            rc = proto_list_add(&schema_arg, &wire, out, e);
        }
        if (rc != 0) {
            (void)err_wrap(e, "parameter %u", i);
            e->arg = (int)i;
        }
    }
    return rc;
}

/* Adds the memory that the program's own steps write to: the job uses it like its arguments'. */
static void ranges_note(struct gpud_client *c, const struct gpud_program *p, struct host_uses *uses)
{
    for (uint32_t i = 0; i < p->range_count; i++) {
        const struct host_range *r = &p->ranges[i];
        struct arena *a = arena_at(c, r->data, r->bytes); /* NULL: the daemon refuses the job */
        if (a != NULL) {
            int access = GPUD_IN | GPUD_OUT; /* whether a step reads it is not known here */
            (void)arena_use_add(uses, a, r->data, r->bytes, access, HOST_USE_NO_ARG);
        }
    }
}

static int program_start(struct gpud_client *c, const struct gpud_program *p, const gpud_arg *args,
                         uint32_t count, const gpud_submit_options *options, uint64_t deadline_ns,
                         struct gpud_job **ret_job, struct err *e)
{
    if (p == NULL || p->client != c || !p->sealed) {
        return err_set(e, p == NULL ? ERR_INVALID : ERR_STATE,
                       "the program is not sealed, or of another client");
    }
    if (count != p->param_count) {
        return err_set(e, ERR_ARG_COUNT, "%u arguments, the program has %u parameters", count,
                       p->param_count);
    }
    if (count > 0 && args == NULL) {
        return err_set(e, ERR_INVALID, "no arguments given, the program has %u parameters", count);
    }
    if (object_check(&p->object, e) != 0) {
        return e->code;
    }
    struct host_uses uses; /* filled as far as it is used */
    uses.count = 0;
    struct capbuf list;
    capbuf_init(&list, PROTO_MESSAGE_MAX);
    int rc = job_room(c, options, deadline_ns, e);
    if (rc == 0) {
        rc = bindings_encode(c, p, args, &uses, &list, e);
    }
    if (rc == 0) {
        ranges_note(c, p, &uses);
        struct msg_submit msg = {
            .program = p->object.daemon,
            .bindings = proto_list_of(&list, count),
        };
        rc = job_start(c, &msg, NULL, 0, &uses, options, ret_job, e);
    } else {
        arena_uses_end(c, uses.use, uses.count, false, false);
    }
    capbuf_finish(&list);
    return rc;
}

int gpud_submit(gpud_client *client, const gpud_program *program, const gpud_arg *args,
                uint32_t count, const gpud_submit_options *options, gpud_job **ret_job)
{
    struct err e;
    err_init(&e);
    int rc = client_enter(client, &e);
    if (rc == 0) {
        rc = ret_job != NULL ? program_start(client, program, args, count, options,
                                             client_deadline(client), ret_job, &e)
                             : err_set(&e, ERR_INVALID, "no pointer for the job");
        client_leave(client);
    }
    return error_report(rc, &e);
}

/* Makes staging memory for the large arguments. May block; TIMEOUT if no time remains for the job.
 */
static int stage_for(struct gpud_client *c, const gpud_arg *args, uint32_t count,
                     uint64_t deadline_ns, struct err *e)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool large = args[i].kind == ARG_INLINE && args[i].bytes >= STAGE_MIN &&
                     args[i].bytes <= PROTO_INLINE_MAX;
        sum += large && arena_at(c, args[i].data, args[i].bytes) == NULL ? args[i].bytes : 0;
    }
    if (sum > 0) {
        arena_stage_prepare(c, sum, deadline_ns);
    }
    return sum == 0 || deadline_ns == NS_NEVER || clock_now_ns() < deadline_ns
               ? 0
               : err_set(e, ERR_TIMEOUT, "the daemon does not answer: nothing was submitted");
}

/* The same options with GPUD_SUBMIT_HELD, for callers that wait for the job at once. */
static int held(const gpud_submit_options *given, gpud_submit_options *ret_options, struct err *e)
{
    gpud_submit_options o = {0};
    int rc = submit_options_read(given, &o, e);
    if (rc != 0) {
        return rc;
    }
    o.size = sizeof o;
    o.flags |= GPUD_SUBMIT_HELD;
    *ret_options = o;
    return 0;
}

/* When a job that is refused for lack of room is not sent again any more; NS_NEVER: it is never
 * sent again. A callback would hear of each refusal. */
static uint64_t again_until(const gpud_submit_options *o, uint64_t first_ns, uint64_t deadline_ns)
{
    uint64_t own = o->deadline_ns > 0 ? ns_add(first_ns, o->deadline_ns) : NS_NEVER;
    bool once = (o->flags & (GPUD_SUBMIT_ONCE | GPUD_SUBMIT_BLOCK)) != 0 || o->done != NULL;
    return once ? NS_NEVER : own < deadline_ns ? own : deadline_ns;
}

/* What is left of the deadline that the caller gave to the job. */
static uint64_t left_of(uint64_t given_ns, uint64_t first_ns)
{
    uint64_t passed = clock_now_ns() - first_ns;
    return given_ns == 0 ? 0 : given_ns > passed ? given_ns - passed : 1;
}

/* Submits and waits, again while the daemon is busy. */
static int run(struct gpud_client *c, const gpud_program *program, const gpud_arg *args,
               uint32_t count, const gpud_submit_options *options, uint64_t deadline_ns,
               struct gpud_job **ret_job, struct err *e)
{
    gpud_submit_options o = *options;
    uint64_t first_ns = clock_now_ns();
    uint64_t until_ns = again_until(&o, first_ns, deadline_ns);
    for (unsigned tries = 0;; tries++) {
        struct gpud_job *job = NULL;
        err_init(e);
        int rc = program_start(c, program, args, count, &o, deadline_ns, &job, e);
        rc = rc == 0 ? job_wait(c, job, deadline_ns, e) : rc;
        if (rc != ERR_BUSY || !job_again(c, tries, until_ns, e)) {
            *ret_job = job;
            return rc;
        }
        if (job != NULL) {
            job_release(c, job);
        }
        o.deadline_ns = left_of(options->deadline_ns, first_ns);
    }
}

int gpud_run(gpud_client *client, const gpud_program *program, const gpud_arg *args, uint32_t count,
             const gpud_submit_options *options, gpud_job **ret_job)
{
    struct err e;
    err_init(&e);
    gpud_submit_options o = {0};
    struct gpud_job *job = NULL;
    int rc = client_enter(client, &e);
    if (rc != 0) {
        return error_report(rc, &e);
    }
    uint64_t deadline_ns = client_deadline(client);
    rc = held(options, &o, &e);
    if (rc == 0) {
        rc = stage_for(client, args, args != NULL ? count : 0, deadline_ns, &e);
    }
    if (rc == 0) {
        rc = run(client, program, args, count, &o, deadline_ns, &job, &e);
    }
    if (job != NULL && ret_job != NULL) {
        *ret_job = job;
    } else if (job != NULL) {
        job_release(client, job);
    }
    client_leave(client);
    return error_report(rc, &e);
}

/* ---- one step ------------------------------------------------------------------------------ */

static bool is_shared(const struct host_uses *uses, uint32_t arg)
{
    unsigned i = 0;
    while (i < uses->count && uses->use[i].arg != arg) {
        i++;
    }
    return i < uses->count;
}

static size_t sinks_collect(struct gpud_client *c, gpud_kernel kernel, const gpud_arg *args,
                            uint32_t count, const struct host_uses *uses,
                            struct sink sinks[PROTO_ARGS_MAX])
{
    struct kernel *k = NULL;
    size_t n = 0;
    if (kernel_get(c, kernel, &k, NULL) != 0) {
        return 0;
    }
    for (uint32_t i = 0; i < count && i < PROTO_ARGS_MAX; i++) {
        uint32_t access = args[i].access != 0 ? args[i].access : arg_access(k, i);
        if (args[i].kind == ARG_INLINE && (access & GPUD_OUT) != 0 && !is_shared(uses, i)) {
            sinks[n++] = (struct sink){
                .arg = i,
                .data = args[i].data,
                .bytes = (size_t)args[i].bytes,
            };
        }
    }
    return n;
}

static int launch_start(struct gpud_client *c, gpud_kernel kernel, const gpud_arg *args,
                        uint32_t count, const gpud_grid *grid, const gpud_submit_options *options,
                        uint64_t deadline_ns, struct gpud_job **ret_job, struct err *e)
{
    struct sink sinks[PROTO_ARGS_MAX];
    struct host_uses uses; /* filled as far as it is used */
    uses.count = 0;
    struct capbuf steps;
    capbuf_init(&steps, PROTO_MESSAGE_MAX);
    int rc = count == 0 || args != NULL ? job_room(c, options, deadline_ns, e)
                                        : err_set(e, ERR_INVALID, "no arguments");
    if (rc == 0) {
        rc = step_add_launch(c, kernel, args, count, grid, &uses, &steps, e);
    }
    if (rc == 0) {
        size_t sink_count = sinks_collect(c, kernel, args, count, &uses, sinks);
        struct msg_submit msg = {.steps = proto_list_of(&steps, 1)};
        rc = job_start(c, &msg, sinks, sink_count, &uses, options, ret_job, e);
    } else {
        arena_uses_end(c, uses.use, uses.count, false, false);
    }
    capbuf_finish(&steps);
    return rc;
}

int gpud_launch(gpud_client *client, gpud_kernel kernel, const gpud_arg *args, uint32_t count,
                const gpud_grid *grid, const gpud_submit_options *options, gpud_job **ret_job)
{
    struct err e = ERR_INIT;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        rc = ret_job != NULL ? launch_start(client, kernel, args, count, grid, options,
                                            client_deadline(client), ret_job, &e)
                             : err_set(&e, ERR_INVALID, "no pointer for the job");
        client_leave(client);
    }
    return error_report(rc, &e);
}

static int launch_wait(struct gpud_client *c, gpud_kernel kernel, const gpud_arg *args,
                       uint32_t count, const gpud_grid *grid, struct err *e)
{
    gpud_submit_options o = {0};
    struct gpud_job *job = NULL;
    uint64_t deadline_ns = client_deadline(c);
    int rc = held(NULL, &o, e);
    o.flags |= GPUD_SUBMIT_BLOCK;
    if (rc == 0) {
        rc = stage_for(c, args, args != NULL ? count : 0, deadline_ns, e);
    }
    if (rc == 0) {
        rc = launch_start(c, kernel, args, count, grid, &o, deadline_ns, &job, e);
    }
    if (rc == 0) {
        rc = job_wait(c, job, deadline_ns, e);
        job_release(c, job);
    }
    return rc;
}

/* ---- gpud_call ----------------------------------------------------------------------------- */

#define CALL_SMALL (64u * 1024u) /* bytes: arrays up to here always travel with the job */

/* Do all arrays outside of arenas fit into one message each way? */
static bool fits(struct gpud_client *c, const gpud_arg *args, uint32_t count)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (args[i].kind == ARG_INLINE && arena_at(c, args[i].data, args[i].bytes) == NULL) {
            sum += args[i].bytes;
        }
    }
    return sum <= PROTO_INLINE_MAX && sum <= c->session.max_message - 4096;
}

struct big_call {
    gpud_client *client;
    gpud_kernel kernel;
    gpud_arg args[PROTO_ARGS_MAX];
    gpud_arg host[PROTO_ARGS_MAX];      /* the host arguments before they were replaced */
    gpud_buffer buffer[PROTO_ARGS_MAX]; /* id 0: none */
    uint32_t access[PROTO_ARGS_MAX];
    bool shared[PROTO_ARGS_MAX]; /* lies in an arena */
    uint32_t count;
    bool placed;     /* `device` is known; all further buffers are created there */
    uint64_t device; /* id of the device of the buffers */
};

static int big_place(struct big_call *b, gpud_buffer buffer)
{
    gpud_buffer_desc desc = {.size = sizeof desc};
    int rc = gpud_buffer_info(b->client, buffer, &desc);
    if (rc == 0) {
        b->placed = true;
        b->device = desc.device;
    }
    return rc;
}

/* Sets `device` from the first buffer among the arguments, if there is one. */
static void big_look(struct big_call *b)
{
    for (uint32_t i = 0; i < b->count && !b->placed; i++) {
        if (b->args[i].kind == ARG_BUFFER) {
            (void)big_place(b, (gpud_buffer){b->args[i].handle}); /* the launch reports the error */
        }
    }
}

static int big_create(struct big_call *b, const gpud_arg *arg, gpud_buffer *ret_buffer)
{
    gpud_shape shape = {.dtype = arg->dtype, .ndim = arg->ndim};
    memcpy(shape.dim, arg->dim, sizeof shape.dim);
    if (b->placed) {
        return gpud_buffer_create_on(b->client, b->device, shape, 0, NULL, ret_buffer);
    }
    int rc = gpud_buffer_create(b->client, shape, 0, NULL, ret_buffer);
    return rc == 0 ? big_place(b, *ret_buffer) : rc;
}

static int big_prepare(struct big_call *b)
{
    int rc = 0;
    big_look(b);
    for (uint32_t i = 0; i < b->count && rc == 0; i++) {
        gpud_arg *arg = &b->args[i];
        if (arg->kind != ARG_INLINE || arg->bytes <= CALL_SMALL || b->shared[i]) {
            continue;
        }
        rc = big_create(b, arg, &b->buffer[i]);
        if (rc == 0 && (b->access[i] & GPUD_IN) != 0) {
            rc =
                gpud_write(b->client, b->buffer[i], (int)arg->dtype, 0, GPUD_REST, arg->data, NULL);
        }
        if (rc == 0) {
            b->host[i] = *arg;
            *arg = gpud_arg_with(gpud_in(b->buffer[i]), (int)b->access[i]);
            arg->view = b->host[i].view;
        }
    }
    return rc;
}

static int big_fetch(struct big_call *b)
{
    int rc = 0;
    for (uint32_t i = 0; i < b->count && rc == 0; i++) {
        if (b->buffer[i].id != 0 && (b->access[i] & GPUD_OUT) != 0) {
            rc = gpud_read(b->client, b->buffer[i], (int)b->host[i].dtype, 0, GPUD_REST,
                           b->host[i].data, NULL);
        }
    }
    return rc;
}

/* Arrays that are too large for a message go through temporary buffers. */
static int call_big(struct big_call *b, const gpud_grid *grid)
{
    struct err e = ERR_INIT;
    int rc = big_prepare(b);
    if (rc == 0) {
        rc = client_enter(b->client, &e);
        if (rc == 0) {
            rc = launch_wait(b->client, b->kernel, b->args, b->count, grid, &e);
            client_leave(b->client);
        }
        (void)error_report(rc, &e);
    }
    if (rc == 0) {
        rc = big_fetch(b);
    }
    gpud_error kept = *gpud_last_error();
    for (uint32_t i = 0; i < b->count; i++) {
        if (b->buffer[i].id != 0) {
            (void)gpud_buffer_free(b->client, b->buffer[i]);
        }
    }
    if (rc != 0) {
        error_restore(&kept); /* freeing the buffers may have failed, too */
    }
    return rc;
}

static int big_init(struct big_call *b, gpud_client *c, gpud_kernel kernel, const gpud_arg *args,
                    uint32_t count, struct err *e)
{
    struct kernel *k = NULL;
    int rc = kernel_get(c, kernel, &k, e);
    if (rc == 0 && count > PROTO_ARGS_MAX) {
        rc = err_set(e, ERR_ARG_COUNT, "%u arguments, at most %u", count, PROTO_ARGS_MAX);
    }
    if (rc != 0) {
        return rc;
    }
    *b = (struct big_call){.client = c, .kernel = kernel, .count = count};
    for (uint32_t i = 0; i < count; i++) {
        b->args[i] = args[i];
        b->shared[i] = arena_at(c, args[i].data, args[i].bytes) != NULL;
        b->access[i] = args[i].access != 0 ? args[i].access : arg_access(k, i);
    }
    return 0;
}

int gpud_call(gpud_client *client, gpud_kernel kernel, const gpud_arg *args, uint32_t count,
              const gpud_grid *grid)
{
    struct err e = ERR_INIT;
    struct big_call big;
    bool small = true;
    int rc = client_enter(client, &e);
    if (rc != 0) {
        return error_report(rc, &e);
    }
    if (args == NULL && count > 0) {
        rc = err_set(&e, ERR_INVALID, "no arguments");
    } else if (fits(client, args, count)) {
        rc = launch_wait(client, kernel, args, count, grid, &e);
    } else {
        small = false;
        rc = big_init(&big, client, kernel, args, count, &e);
    }
    client_leave(client);
    if (rc != 0 || small) {
        return error_report(rc, &e);
    }
    return call_big(&big, grid);
}

/* ---- copy and fill ------------------------------------------------------------------------- */

static int one_step(struct gpud_client *c, int op, const gpud_arg *to, const gpud_arg *from,
                    struct err *e)
{
    struct proto_step step = {.op = (uint64_t)op};
    struct proto_arg wire[2];
    struct gpud_job *job = NULL;
    gpud_submit_options o = {0};
    uint64_t deadline_ns = client_deadline(c);
    struct capbuf steps;
    capbuf_init(&steps, PROTO_MESSAGE_MAX);
    int rc = held(NULL, &o, e);
    o.flags |= GPUD_SUBMIT_BLOCK;
    if (rc == 0) {
        rc = job_room(c, &o, deadline_ns, e);
    }
    if (rc == 0) {
        rc = arg_encode(c, to, GPUD_OUT, NULL, 0, &wire[0], e);
    }
    if (rc == 0) {
        rc = arg_encode(c, from, from->kind != ARG_SCALAR ? GPUD_IN : 0, NULL, 0, &wire[1], e);
    }
    if (rc == 0) {
        rc = step_add(&step, wire, 2, &steps, e);
    }
    if (rc == 0) {
        struct msg_submit msg = {.steps = proto_list_of(&steps, 1)};
        rc = job_start(c, &msg, NULL, 0, NULL, &o, &job, e);
    }
    capbuf_finish(&steps);
    if (rc == 0) {
        rc = job_wait(c, job, deadline_ns, e);
        job_release(c, job);
    }
    return rc;
}

int gpud_copy(gpud_client *client, gpud_arg to, gpud_arg from)
{
    struct err e = ERR_INIT;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        rc = one_step(client, OP_COPY, &to, &from, &e);
        client_leave(client);
    }
    int other = 0;
    if (rc == ERR_STATE && copy_between_devices(client, &to, &from, &other)) {
        return other;
    }
    return error_report(rc, &e);
}

int gpud_fill(gpud_client *client, gpud_arg to, gpud_arg scalar)
{
    struct err e = ERR_INIT;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        rc = one_step(client, OP_FILL, &to, &scalar, &e);
        client_leave(client);
    }
    return error_report(rc, &e);
}
