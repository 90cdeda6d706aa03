/* Writes and reads of buffers: jobs of one step each, WINDOW of them in flight at a time. */

#include "client/src/api/transfer.h"

#include <string.h>

#include "client/src/api/args.h"
#include "client/src/base/enter.h"
#include "client/src/base/error.h"
#include "client/src/objects/arena.h"
#include "client/src/objects/handles.h"
#include "client/src/objects/job.h"
#include "client/src/session/arena_make.h"
#include "client/src/session/call.h"
#include "client/src/session/job_wait.h"
#include "common/shape.h"

#define PART_BYTES   (4u * 1024u * 1024u)
#define STAGE_BYTES  (2u * 1024u * 1024u)  /* a part that goes through staging memory */
#define SHARED_BYTES (16u * 1024u * 1024u) /* a part that lies in an arena */
#define WINDOW       3

struct transfer {
    struct gpud_client *client;
    uint64_t daemon; /* the buffer's handle */
    uint32_t dtype;
    uint64_t element; /* bytes */
    bool write;
    uint8_t *host;
    uint64_t first;
    uint64_t count;
    bool shared;    /* host memory lies in an arena */
    bool staged;    /* parts go through staging memory if some is free */
    uint64_t part;  /* elements */
    uint64_t sent;  /* elements */
    uint64_t ended; /* elements */
    struct {
        struct gpud_job *job;
        uint64_t count;
    } window[WINDOW]; /* a ring */
    unsigned head;
    unsigned under_way;
    gpud_transfer options;
};

int part_start(struct gpud_client *c, const struct part *part, struct gpud_job **ret_job,
               struct err *e)
{
    size_t bytes = (size_t)(part->count * dtype_size((int)part->dtype));
    struct host_uses uses; /* filled as far as it is used */
    uses.count = 0;
    struct proto_arg args[2] = {
        {.tag = ARG_BUFFER,
         .access = part->write ? ACCESS_OUT : ACCESS_IN,
         .handle = part->daemon,
         .first = part->first,
         .count = part->count},
    };
    struct proto_step step = {.op = part->write ? OP_WRITE : OP_READ};
    struct sink sink = {.data = part->host, .bytes = bytes};
    gpud_arg from = part->write ? gpud_host_in(part->host, part->count, (int)part->dtype)
                                : gpud_host_out(part->host, part->count, (int)part->dtype);
    gpud_submit_options options = {
        .size = sizeof options,
        .flags = GPUD_SUBMIT_HELD | GPUD_SUBMIT_BLOCK,
    };
    struct capbuf steps;
    capbuf_init(&steps, PROTO_MESSAGE_MAX);
    int rc = job_room(c, &options, client_deadline(c), e);
    if (rc == 0) {
        rc = arg_encode(c, &from, 0, &uses, 1, &args[1], e);
    }
    bool inlined = !part->write && uses.count == 0;
    if (rc == 0) {
        rc = step_add(&step, args, inlined ? 1 : 2, &steps, e);
    }
    if (rc == 0) {
        struct msg_submit msg = {.steps = proto_list_of(&steps, 1)};
        rc = job_start(c, &msg, &sink, inlined ? 1 : 0, &uses, &options, ret_job, e);
    } else {
        arena_uses_end(c, uses.use, uses.count, false, false);
    }
    capbuf_finish(&steps);
    return rc;
}

/* Waits for the oldest part. */
static int part_end(struct transfer *t, struct err *e)
{
    struct gpud_job *job = t->window[t->head].job;
    int rc = job_wait(t->client, job, client_deadline(t->client), e);
    t->ended += t->window[t->head].count;
    t->head = (t->head + 1) % WINDOW;
    t->under_way--;
    job_release(t->client, job);
    return rc;
}

static int progress(struct transfer *t, struct err *e)
{
    if (t->options.progress == NULL) {
        return 0;
    }
    (void)pthread_mutex_unlock(&t->client->lock);
    bool go_on = t->options.progress(t->ended * t->element, t->count * t->element, t->options.user);
    (void)pthread_mutex_lock(&t->client->lock);
    return go_on ? 0
                 : err_set(e, ERR_CANCELLED, "stopped after %llu of %llu bytes",
                           (unsigned long long)(t->ended * t->element),
                           (unsigned long long)(t->count * t->element));
}

static int transfer_run(struct transfer *t, struct err *e)
{
    int rc = 0;
    while (rc == 0 && (t->sent < t->count || t->under_way > 0)) {
        if (t->sent < t->count && t->under_way < WINDOW) {
            uint64_t left = t->count - t->sent;
            uint64_t count = left < t->part ? left : t->part;
            unsigned at = (t->head + t->under_way) % WINDOW;
            struct part part = {
                .daemon = t->daemon,
                .dtype = t->dtype,
                .write = t->write,
                .host = t->host + t->sent * t->element,
                .first = t->first + t->sent,
                .count = count,
            };
            rc = part_start(t->client, &part, &t->window[at].job, e);
            if (rc == 0) {
                t->window[at].count = count;
                t->sent += count;
                t->under_way++;
            }
        } else {
            rc = part_end(t, e);
            if (rc == 0) {
                rc = progress(t, e);
            }
        }
    }
    for (; t->under_way > 0; t->under_way--) {
        job_release(t->client, t->window[t->head].job);
        t->head = (t->head + 1) % WINDOW;
    }
    return rc;
}

/* The default bytes of a part: depends on how the bytes travel. */
static uint64_t part_usual(const struct transfer *t)
{
    uint64_t total = t->count * t->element;
    if (t->shared) {
        return SHARED_BYTES;
    }
    if (t->staged && total > STAGE_BYTES) {
        return STAGE_BYTES;
    }
    return total <= PROTO_INLINE_MAX ? PROTO_INLINE_MAX : PART_BYTES;
}

/* Bytes of a message that an array can use; the rest is for the other fields. */
static uint64_t message_room(uint64_t message)
{
    uint64_t other = PROTO_MESSAGE_MAX - PROTO_INLINE_MAX;
    return message > 2 * other ? message - other : message / 2;
}

static int options_check(struct transfer *t, const gpud_transfer *options, struct err *e)
{
    uint64_t part = part_usual(t);
    if (options != NULL) {
        if (options->size < sizeof options->size || options->size > 4096) {
            return err_set(e, ERR_INVALID,
                           "gpud_transfer.size is %zu: set it to the struct's sizeof",
                           options->size);
        }
        memcpy(&t->options, options,
               options->size < sizeof t->options ? options->size : sizeof t->options);
    }
    if (t->options.progress != NULL) {
        part = part < PART_BYTES ? part : PART_BYTES;
    }
    if (t->options.part_bytes > 0) {
        part = t->options.part_bytes < PROTO_INLINE_MAX ? t->options.part_bytes : PROTO_INLINE_MAX;
    }
    uint64_t room = message_room(t->client->session.max_message);
    part = !t->shared && part > room ? room : part;
    t->part = part / t->element > 0 ? part / t->element : 1;
    return 0;
}

/* Chooses how the bytes travel, and requests staging memory for them, which may block. */
static void stage(struct transfer *t)
{
    uint64_t bytes = t->count * t->element;
    t->shared = arena_at(t->client, t->host, bytes) != NULL;
    if (!t->shared && bytes >= STAGE_MIN) {
        uint64_t window = (uint64_t)WINDOW * STAGE_BYTES;
        arena_stage_prepare(t->client, bytes < window ? bytes : window, client_deadline(t->client));
        t->staged = arena_has_staging(t->client);
    }
}

static int transfer(struct gpud_client *c, gpud_buffer buffer, int dtype, uint64_t first,
                    uint64_t count, void *host, bool write, const gpud_transfer *options,
                    struct err *e)
{
    struct buffer *b = NULL;
    int rc = buffer_use(c, buffer, &b, e);
    if (rc != 0) {
        return rc;
    }
    uint64_t total = gpud_shape_count(b->shape);
    if (dtype != GPUD_NONE && (uint32_t)dtype != b->shape.dtype) {
        return err_set(e, ERR_ARG_TYPE, "buffer of %s, data of %s", dtype_name((int)b->shape.dtype),
                       dtype_name(dtype));
    }
    if (first > total) {
        return err_set(e, ERR_RANGE, "element %llu is outside of a buffer of %llu elements",
                       (unsigned long long)first, (unsigned long long)total);
    }
    count = count != GPUD_REST ? count : total - first;
    if (count > total - first) {
        return err_set(e, ERR_RANGE, "%llu elements from element %llu on exceed a buffer of %llu",
                       (unsigned long long)count, (unsigned long long)first,
                       (unsigned long long)total);
    }
    struct transfer t = {
        .client = c,
        .daemon = b->daemon,
        .dtype = b->shape.dtype,
        .element = gpud_dtype_size((int)b->shape.dtype),
        .write = write,
        .host = host,
        .first = first,
        .count = count,
    };
    if (t.count == 0) {
        return 0;
    }
    if (host == NULL) {
        return err_set(e, ERR_INVALID, "no host memory");
    }
    stage(&t);
    rc = buffer_use(c, buffer, &b, e); /* stage() released the lock: the buffer may have changed */
    if (rc != 0) {
        return rc;
    }
    t.daemon = b->daemon;
    rc = options_check(&t, options, e);
    return rc != 0 ? rc : transfer_run(&t, e);
}

int gpud_write(gpud_client *client, gpud_buffer buffer, int dtype, uint64_t first, uint64_t count,
               const void *data, const gpud_transfer *options)
{
    struct err e = ERR_INIT;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        rc = transfer(client, buffer, dtype, first, count, (void *)(uintptr_t)data, true, options,
                      &e);
        if (rc != 0) {
            (void)err_wrap(&e, "write");
        }
        client_leave(client);
    }
    return error_report(rc, &e);
}

int gpud_read(gpud_client *client, gpud_buffer buffer, int dtype, uint64_t first, uint64_t count,
              void *data, const gpud_transfer *options)
{
    struct err e = ERR_INIT;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        rc = transfer(client, buffer, dtype, first, count, data, false, options, &e);
        if (rc != 0) {
            (void)err_wrap(&e, "read");
        }
        client_leave(client);
    }
    return error_report(rc, &e);
}
