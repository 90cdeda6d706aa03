#include "tests/unit/client/fake.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/transport/tcp/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/shape.h"
#include "proto/codec.h"

#define SLOTS       96
#define BUFFERS     256
#define SEQS        (1u << 20)
#define BUFFER_SIZE (48u << 20)

enum slot_state { SLOT_RECV, SLOT_SEND, SLOT_HELD };

struct slot {
    _Atomic(struct fake *) fake; /* atomic, so that TSan sees it handed to NNG's threads */
    nng_ctx ctx;
    nng_aio *aio;
    enum slot_state state;
    nng_msg *msg; /* held request */
    uint64_t order;
};

struct fake_buffer {
    uint64_t handle;
    struct msg_buffer_create shape;
    uint8_t *data;
    size_t size;
};
struct fake {
    char dir[64], url[128];
    nng_socket socket;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct slot slots[SLOTS];
    enum fake_mode mode;
    uint64_t max_inflight, order;
    uint64_t life; /* grows with each restart; part of handles and of the daemon's id */
    bool knows_session, results_first;
    struct slot *waiting; /* a held WAIT */
    uint64_t event_number;
    uint64_t lost[16], lost_count;
    uint64_t done[4096];       /* jobs that EVENTS tells */
    unsigned done_count, told; /* told: in the last EVENTS, kept until it was taken */
    uint8_t *seen;             /* by sequence number */
    uint64_t highest;
    struct fake_buffer buffers[BUFFERS];
    uint64_t next;
    uint64_t executed;
    uint64_t twice;
    uint64_t stale;
    uint64_t next_job;
};

static void check(int rc, const char *what)
{
    if (rc != 0) {
        (void)fprintf(stderr, "fake daemon: %s: %s\n", what, nng_strerror(rc));
        exit(1);
    }
}

static void receive(struct slot *s)
{
    s->state = SLOT_RECV;
    nng_ctx_recv(s->ctx, s->aio);
}

static void answer(struct slot *s, const struct schema *schema, const void *msg)
{
    struct capbuf out;
    struct err e = ERR_INIT;
    nng_msg *reply = NULL;
    capbuf_init(&out, 64u << 20);
    if (proto_encode(schema, msg, &out, &e) != 0) {
        (void)fprintf(stderr, "fake daemon: %s\n", e.text);
        exit(1);
    }
    check(nng_msg_alloc(&reply, 0), "answer");
    check(nng_msg_append(reply, out.data, out.size), "answer");
    capbuf_finish(&out);
    s->state = SLOT_SEND;
    nng_aio_set_msg(s->aio, reply);
    nng_ctx_send(s->ctx, s->aio);
}

static void answer_error(struct slot *s, int code, const char *text)
{
    struct msg_error msg = {
        .code = code,
        .step = -1,
        .arg = -1,
        .text = bytes_str(text),
        .retry_after_ns = code == ERR_BUSY ? 1000000 : 0,
    };
    answer(s, &schema_msg_error, &msg);
}

static struct fake_buffer *buffer_find(struct fake *f, uint64_t handle)
{
    for (unsigned i = 0; i < BUFFERS; i++) {
        if (f->buffers[i].handle == handle && handle != 0) {
            return &f->buffers[i];
        }
    }
    return NULL;
}

static struct fake_buffer *buffer_room(struct fake *f)
{
    for (unsigned i = 0; i < BUFFERS; i++) {
        if (f->buffers[i].handle == 0) {
            return &f->buffers[i];
        }
    }
    return NULL;
}

static void buffer_answer(struct slot *s, const struct fake_buffer *b)
{
    struct msg_buffer msg = {
        .handle = b->handle,
        .dtype = b->shape.dtype,
        .ndim = b->shape.ndim,
        .d0 = b->shape.d0,
        .d1 = b->shape.d1,
        .d2 = b->shape.d2,
        .d3 = b->shape.d3,
        .label = bytes_str("label"),
        .state = 1,
        .device = 1,
    };
    answer(s, &schema_msg_buffer, &msg);
}

static void buffer_create(struct slot *s, const struct msg_buffer_create *msg)
{
    static const size_t sizes[] = {0, 1, 1, 2, 2, 4, 4, 8, 8, 2, 4, 8};
    uint64_t count = msg->d0 * (msg->ndim > 1 ? msg->d1 : 1);
    uint64_t size = msg->dtype < 12 ? count * sizes[msg->dtype] : 0;
    struct fake_buffer *b = buffer_room(s->fake);
    if (b == NULL || size > BUFFER_SIZE) {
        answer_error(s, ERR_DEVICE_MEMORY, "no room");
        return;
    }
    *b = (struct fake_buffer){.handle = ++s->fake->next, .shape = *msg, .size = (size_t)size};
    b->shape.label = (struct bytes){0};
    b->data = calloc(1, b->size + 1);
    buffer_answer(s, b);
}

static void buffer_free(struct slot *s, uint64_t handle)
{
    struct fake_buffer *b = buffer_find(s->fake, handle);
    struct msg_done done = {0};
    if (b == NULL) {
        answer_error(s, ERR_STALE_HANDLE, "no such buffer");
        return;
    }
    free(b->data);
    *b = (struct fake_buffer){0};
    answer(s, &schema_msg_done, &done);
}

static bool fresh(struct fake *f, uint64_t handle)
{
    bool good = handle >> 16 == f->life;
    f->stale += good ? 0 : 1;
    return good;
}

struct run {
    struct capbuf outputs;
    uint64_t output_count;
    uint8_t *scratch[PROTO_ARGS_MAX];
    unsigned scratch_count;
    int code;
};

static void output_add(struct run *run, uint64_t step, uint64_t arg, struct bytes data)
{
    struct proto_output out = {.step = step, .arg = arg, .data = data};
    if (proto_list_add(&schema_output, &out, &run->outputs, NULL) != 0) {
        run->code = ERR_NOMEM;
    }
    run->output_count++;
}

static void run_launch(struct fake *f, const struct proto_step *step, uint64_t index,
                       struct run *run)
{
    struct proto_arg arg;
    uint64_t i = 0;
    if (!fresh(f, step->kernel)) {
        run->code = ERR_STALE_HANDLE;
    }
    for (struct proto_iter it = proto_iter_of(step->args); proto_list_next(&it, &schema_arg, &arg);
         i++) {
        struct fake_buffer *b = arg.tag == ARG_BUFFER ? buffer_find(f, arg.handle) : NULL;
        for (size_t k = 0; b != NULL && (arg.access & ACCESS_OUT) != 0 && k < b->size; k++) {
            b->data[k]++;
        }
        if (arg.tag == ARG_INLINE && (arg.access & ACCESS_OUT) != 0) {
            size_t size = arg.access == ACCESS_INOUT ? arg.data.size : (size_t)arg.d0 * 4;
            uint8_t *data = calloc(1, size + 1);
            for (size_t k = 0; k < size; k++) {
                data[k] = (uint8_t)((arg.data.size > k ? arg.data.data[k] : 0) + 1);
            }
            output_add(run, index, i, bytes_of(data, size));
            free(data);
        }
    }
}

static void run_transfer(struct fake *f, const struct proto_step *step, uint64_t index,
                         struct run *run)
{
    struct proto_arg args[2] = {0};
    struct proto_iter it = proto_iter_of(step->args);
    (void)proto_list_next(&it, &schema_arg, &args[0]);
    (void)proto_list_next(&it, &schema_arg, &args[1]);
    struct fake_buffer *b = buffer_find(f, args[0].handle);
    if (b == NULL) {
        run->code = ERR_BAD_HANDLE;
        return;
    }
    size_t element = b->size / (size_t)(b->shape.d0 > 0 ? b->shape.d0 : 1);
    size_t at = (size_t)args[0].first * element;
    size_t size = args[0].count > 0 ? (size_t)args[0].count * element : b->size - at;
    if (at + size > b->size) {
        run->code = ERR_RANGE;
    } else if (step->op == OP_READ) {
        output_add(run, index, 0, bytes_of(b->data + at, size));
    } else if (step->op == OP_WRITE && args[1].data.size == size) {
        memcpy(b->data + at, args[1].data.data, size);
    } else if (step->op == OP_FILL) {
        memset(b->data + at, (int)(args[1].bits & 0xff), size);
    } else {
        run->code = ERR_ARG_SHAPE;
    }
}

static void run_steps(struct fake *f, const struct msg_submit *msg, struct run *run)
{
    struct proto_step step;
    uint64_t index = 0;
    f->executed++;
    if (msg->program != 0 && !fresh(f, msg->program)) {
        run->code = ERR_STALE_HANDLE;
    }
    for (struct proto_iter it = proto_iter_of(msg->steps);
         run->code == 0 && proto_list_next(&it, &schema_step, &step); index++) {
        if (step.op == OP_LAUNCH) {
            run_launch(f, &step, index, run);
        } else {
            run_transfer(f, &step, index, run);
        }
    }
}

static void events_send(struct fake *f);

static void submit_answer(struct slot *s, const struct msg_submit *msg)
{
    struct fake *f = s->fake;
    struct run run = {0};
    uint64_t job = ++f->next_job;
    capbuf_init(&run.outputs, 64u << 20);
    run_steps(f, msg, &run);
    struct proto_result result = {
        .job = job,
        .code = run.code,
        .step = -1,
        .arg = -1,
        .outputs = proto_list_of(&run.outputs, run.output_count),
        .device = 1,
        .executed_ns = 1000,
    };
    if ((msg->flags & SUBMIT_ASYNC) != 0) {
        struct msg_accepted accepted = {.job = job};
        f->done[f->done_count++ % 4096] = job;
        if (f->results_first) {
            events_send(f);
        }
        answer(s, &schema_msg_accepted, &accepted);
        events_send(f);
    } else {
        struct capbuf list;
        capbuf_init(&list, 64u << 20);
        (void)proto_list_add(&schema_result, &result, &list, NULL);
        struct msg_results results = {.results = proto_list_of(&list, 1)};
        answer(s, &schema_msg_results, &results);
        capbuf_finish(&list);
    }
    capbuf_finish(&run.outputs);
}

/* Answers the held WAIT with what there is. */
static void events_send(struct fake *f)
{
    struct capbuf results, notices;
    uint64_t count = 0;
    if (f->waiting == NULL || (f->done_count == 0 && f->lost_count == 0)) {
        return;
    }
    capbuf_init(&results, 1u << 20);
    capbuf_init(&notices, 1u << 20);
    for (; count < f->done_count && count < PROTO_EVENTS_MAX; count++) {
        struct proto_result result = {.job = f->done[count], .step = -1, .arg = -1};
        (void)proto_list_add(&schema_result, &result, &results, NULL);
    }
    f->told = (unsigned)count;
    for (unsigned i = 0; i < f->lost_count; i++) {
        struct proto_notice notice = {
            .kind = NOTICE_BUFFER_LOST,
            .handle = f->lost[i],
            .text = bytes_str("its worker ended"),
        };
        (void)proto_list_add(&schema_notice, &notice, &notices, NULL);
    }
    struct msg_events events = {
        .number = ++f->event_number,
        .results = proto_list_of(&results, count),
        .notices = proto_list_of(&notices, f->lost_count),
    };
    f->lost_count = 0;
    struct slot *s = f->waiting;
    f->waiting = NULL;
    answer(s, &schema_msg_events, &events);
    capbuf_finish(&results);
    capbuf_finish(&notices);
}

static void hello(struct slot *s, struct bytes message)
{
    struct fake *f = s->fake;
    struct msg_hello msg;
    struct proto_span span;
    uint8_t id[PROTO_CLIENT_ID_BYTES] = {0};
    if (f->mode == FAKE_REFUSE) {
        answer_error(s, ERR_PERMISSION, "not you");
        return;
    }
    if (proto_decode(&schema_msg_hello, message, &msg, NULL) != 0) {
        answer_error(s, ERR_PROTOCOL, "bad hello");
        return;
    }
    for (struct proto_iter it = proto_iter_of(msg.taken);
         proto_list_next(&it, &schema_span, &span);) {
        for (uint64_t i = 0; i < span.count && span.first + i < SEQS; i++) {
            f->seen[span.first + i] |= 2;
        }
    }
    id[0] = (uint8_t)f->life;
    struct msg_welcome welcome = {
        .major = PROTO_MAJOR,
        .minor = PROTO_MINOR,
        .daemon_id = bytes_of(id, sizeof id),
        .resumed = f->knows_session,
        .expect = f->knows_session ? f->highest + 1 : msg.resume,
        .max_message = PROTO_MESSAGE_MAX,
        .max_inflight = f->max_inflight,
        .max_reorder = 1024,
        .build = bytes_str("fake"),
        .tenant = bytes_str("tester"),
        .may_load = 1,
        .session = 7,
    };
    f->knows_session = true;
    answer(s, &schema_msg_welcome, &welcome);
}

static void kernel_answer(struct slot *s, struct bytes name)
{
    struct capbuf args;
    struct capbuf list;
    capbuf_init(&args, 4096);
    capbuf_init(&list, 4096);
    if (bytes_equal_str(name, "missing")) {
        answer_error(s, ERR_NOT_FOUND, "no kernel 'missing'");
        return;
    }
    struct proto_karg a = {.name = bytes_str("a"), .kind = 1, .dtype = DTYPE_F32, .bytes = 4};
    struct proto_karg x = {.name = bytes_str("x"), .kind = 2, .access = ACCESS_INOUT};
    (void)proto_list_add(&schema_karg, &a, &args, NULL);
    (void)proto_list_add(&schema_karg, &x, &args, NULL);
    struct proto_kernel kernel = {
        .handle = s->fake->life << 16 | ++s->fake->next,
        .name = name,
        .version = 1,
        .auto_grid = 1,
        .signature = bytes_str("touch(f32 a, inout T x[n])"),
        .args = proto_list_of(&args, 2),
    };
    (void)proto_list_add(&schema_kernel, &kernel, &list, NULL);
    struct msg_kernel_found found = {.kernels = proto_list_of(&list, 1)};
    answer(s, &schema_msg_kernel_found, &found);
    capbuf_finish(&args);
    capbuf_finish(&list);
}

static void module_answer(struct slot *s, struct bytes source)
{
    struct capbuf list;
    if (source.size > 0 && source.data[0] == '!') {
        struct msg_error failed = {
            .code = ERR_COMPILE,
            .step = -1,
            .arg = -1,
            .text = bytes_str("k.cl:1:1: expected expression"),
            .log = bytes_str("k.cl:1:1: error: expected expression\n1 error"),
        };
        answer(s, &schema_msg_error, &failed);
        return;
    }
    capbuf_init(&list, 4096);
    struct proto_kernel kernel = {
        .handle = s->fake->life << 16 | ++s->fake->next,
        .name = bytes_str("mine"),
    };
    (void)proto_list_add(&schema_kernel, &kernel, &list, NULL);
    struct msg_module msg = {
        .module = s->fake->life << 16 | ++s->fake->next,
        .log = bytes_str("warning: none"),
        .kernels = proto_list_of(&list, 1),
    };
    answer(s, &schema_msg_module, &msg);
    capbuf_finish(&list);
}

static void table_answer(struct slot *s)
{
    struct capbuf columns;
    struct capbuf cells;
    struct capbuf rows;
    capbuf_init(&columns, 4096);
    capbuf_init(&cells, 4096);
    capbuf_init(&rows, 4096);
    struct proto_column id = {.name = bytes_str("id"), .kind = COLUMN_UINT};
    struct proto_column name = {.name = bytes_str("name"), .kind = COLUMN_TEXT, .wide = 1};
    (void)proto_list_add(&schema_column, &id, &columns, NULL);
    (void)proto_list_add(&schema_column, &name, &columns, NULL);
    struct proto_cell first = {.value = 3};
    struct proto_cell second = {.text = bytes_str("a device")};
    (void)proto_list_add(&schema_cell, &first, &cells, NULL);
    (void)proto_list_add(&schema_cell, &second, &cells, NULL);
    struct proto_row row = {.cells = proto_list_of(&cells, 2)};
    (void)proto_list_add(&schema_row, &row, &rows, NULL);
    struct msg_table table = {
        .name = bytes_str("devices"),
        .columns = proto_list_of(&columns, 2),
        .rows = proto_list_of(&rows, 1),
    };
    answer(s, &schema_msg_table, &table);
    capbuf_finish(&columns);
    capbuf_finish(&cells);
    capbuf_finish(&rows);
}

static void program_answer(struct slot *s, const struct msg_program_create *msg)
{
    struct proto_step step;
    for (struct proto_iter it = proto_iter_of(msg->steps);
         proto_list_next(&it, &schema_step, &step);) {
        if (step.op == OP_LAUNCH && !fresh(s->fake, step.kernel)) {
            answer_error(s, ERR_STALE_HANDLE, "kernel");
            return;
        }
    }
    struct msg_program told = {.program = s->fake->life << 16 | ++s->fake->next};
    answer(s, &schema_msg_program, &told);
}

union any {
    struct msg_hello hello;
    struct msg_ping ping;
    struct msg_buffer_create buffer_create;
    struct msg_buffer_free buffer_free;
    struct msg_buffer_info buffer_info;
    struct msg_kernel_find kernel_find;
    struct msg_module_load module_load;
    struct msg_program_create program_create;
    struct msg_submit submit;
    struct msg_wait wait;
};

static void submit(struct slot *s, const struct msg_submit *msg)
{
    if (s->fake->mode == FAKE_BUSY) {
        s->fake->mode = FAKE_SERVE;
        answer_error(s, ERR_BUSY, "full");
    } else {
        submit_answer(s, msg);
    }
}

static void serve(struct slot *s, unsigned kind, const union any *msg)
{
    struct msg_done done = {0};
    struct msg_pong pong = {0};
    const struct fake_buffer *buffer = NULL;
    switch (kind) {
    case MSG_KIND_PING:
        pong.value = msg->ping.value;
        answer(s, &schema_msg_pong, &pong);
        break;
    case MSG_KIND_BUFFER_CREATE:
        buffer_create(s, &msg->buffer_create);
        break;
    case MSG_KIND_BUFFER_FREE:
        buffer_free(s, msg->buffer_free.handle);
        break;
    case MSG_KIND_BUFFER_INFO:
        buffer = buffer_find(s->fake, msg->buffer_info.handle);
        if (buffer != NULL) {
            buffer_answer(s, buffer);
        } else {
            answer_error(s, ERR_BAD_HANDLE, "no such buffer");
        }
        break;
    case MSG_KIND_KERNEL_FIND:
        kernel_answer(s, msg->kernel_find.name);
        break;
    case MSG_KIND_MODULE_LOAD:
        module_answer(s, msg->module_load.source);
        break;
    case MSG_KIND_PROGRAM_CREATE:
        program_answer(s, &msg->program_create);
        break;
    case MSG_KIND_SUBMIT:
        submit(s, &msg->submit);
        break;
    case MSG_KIND_QUERY:
        table_answer(s);
        break;
    default:
        answer(s, &schema_msg_done, &done);
        break;
    }
}

static void seq_note(struct fake *f, uint64_t seq)
{
    if (seq == 0 || seq >= SEQS) {
        return;
    }
    f->twice += f->seen[seq] & 1;
    f->seen[seq] |= 1;
    if (seq > f->highest) {
        f->highest = seq;
    }
}

static struct bytes view(nng_msg *m)
{
    return bytes_of(nng_msg_body(m), nng_msg_len(m));
}

static void hold(struct slot *s, nng_msg *m)
{
    s->state = SLOT_HELD;
    s->msg = m;
    s->order = ++s->fake->order;
    (void)pthread_cond_broadcast(&s->fake->changed);
}

/* Takes one request; the lock is held. */
static void request(struct slot *s, nng_msg *m)
{
    struct fake *f = s->fake;
    unsigned kind = proto_kind(view(m));
    const struct schema *schema = schema_find(kind);
    union any msg;
    struct err e = ERR_INIT;
    if (kind == MSG_KIND_HELLO) {
        hello(s, view(m));
    } else if (schema == NULL || schema->size > sizeof msg ||
               proto_decode(schema, view(m), &msg, &e) != 0) {
        answer_error(s, ERR_PROTOCOL, e.text);
    } else {
        seq_note(f, msg.ping.seq);
        if (kind == MSG_KIND_WAIT) {
            if (f->waiting != NULL) {
                receive(f->waiting); /* of a connection that is gone */
            }
            f->waiting = s;
            s->state = SLOT_HELD;
            if (msg.wait.taken >= f->event_number) {
                f->done_count -= f->told;
                memmove(f->done, f->done + f->told, f->done_count * sizeof f->done[0]);
                f->told = 0;
            }
            events_send(f);
        } else if (f->mode == FAKE_SILENT || (kind == MSG_KIND_SUBMIT && f->mode == FAKE_HOLD)) {
            hold(s, m);
            return;
        } else {
            serve(s, kind, &msg);
        }
    }
    nng_msg_free(m);
}

static void aio_done(void *arg)
{
    struct slot *s = arg;
    struct fake *f = s->fake;
    (void)pthread_mutex_lock(&f->lock);
    int rc = nng_aio_result(s->aio);
    if (rc == NNG_ECLOSED) {
        (void)pthread_mutex_unlock(&f->lock);
        return;
    }
    if (s->state == SLOT_RECV && rc == 0) {
        nng_msg *m = nng_aio_get_msg(s->aio);
        nng_aio_set_msg(s->aio, NULL);
        request(s, m);
    } else {
        if (rc != 0 && s->state == SLOT_SEND) {
            nng_msg_free(nng_aio_get_msg(s->aio));
        }
        receive(s);
    }
    (void)pthread_mutex_unlock(&f->lock);
}

static struct fake *kept;
static struct pipe_list {
    pthread_mutex_t lock;
    nng_pipe pipes[64];
    unsigned count;
    bool cut; /* some were closed from this side */
} pipes = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void pipe_changed(nng_pipe p, nng_pipe_ev ev, void *arg)
{
    (void)arg;
    (void)pthread_mutex_lock(&pipes.lock);
    if (ev == NNG_PIPE_EV_ADD_POST && pipes.count < 64) {
        pipes.pipes[pipes.count++] = p;
    }
    for (unsigned i = 0; ev == NNG_PIPE_EV_REM_POST && i < pipes.count; i++) {
        if (nng_pipe_id(pipes.pipes[i]) == nng_pipe_id(p)) {
            pipes.pipes[i] = pipes.pipes[--pipes.count];
        }
    }
    (void)pthread_mutex_unlock(&pipes.lock);
}

struct fake *fake_start(const char *url)
{
    struct fake *f = calloc(1, sizeof *f);
    (void)pthread_mutex_init(&f->lock, NULL);
    (void)pthread_cond_init(&f->changed, NULL);
    f->seen = calloc(1, SEQS);
    f->life = 1;
    f->max_inflight = 256;
    if (url != NULL) {
        (void)snprintf(f->url, sizeof f->url, "%s", url);
    } else {
        (void)snprintf(f->dir, sizeof f->dir, "/tmp/gpud-test.XXXXXX");
        if (mkdtemp(f->dir) == NULL) {
            exit(1);
        }
        (void)snprintf(f->url, sizeof f->url, "ipc://%s/s", f->dir);
    }
    check(nng_rep0_open(&f->socket), "socket");
    check(nng_pipe_notify(f->socket, NNG_PIPE_EV_ADD_POST, pipe_changed, NULL), "notify");
    check(nng_pipe_notify(f->socket, NNG_PIPE_EV_REM_POST, pipe_changed, NULL), "notify");
    for (unsigned i = 0; i < SLOTS; i++) {
        f->slots[i].fake = f;
    }
    (void)pthread_mutex_lock(&f->lock);
    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot *s = &f->slots[i];
        check(nng_ctx_open(&s->ctx, f->socket), "context");
        check(nng_aio_alloc(&s->aio, aio_done, s), "aio");
        receive(s);
    }
    (void)pthread_mutex_unlock(&f->lock);
    nng_listener listener;
    check(nng_listen(f->socket, f->url, &listener, 0), "listen");
    if (url != NULL) {
        int port = 0;
        check(nng_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &port), "port");
        (void)snprintf(f->url, sizeof f->url, "tcp://127.0.0.1:%d", port);
    }
    return f;
}

void fake_stop(struct fake *f)
{
    if (pipes.cut) {
        kept =
            f; /* nng_close of 1.5.2 may hang after nng_pipe_close: the test's process ends now */
        return;
    }
    (void)nng_close(f->socket);
    for (unsigned i = 0; i < SLOTS; i++) {
        nng_aio_stop(f->slots[i].aio);
    }
    (void)pthread_mutex_lock(&f->lock); /* what NNG's threads did lies behind us */
    for (unsigned i = 0; i < SLOTS; i++) {
        nng_aio_free(f->slots[i].aio);
        if (f->slots[i].msg != NULL) {
            nng_msg_free(f->slots[i].msg);
        }
    }
    for (unsigned i = 0; i < BUFFERS; i++) {
        free(f->buffers[i].data);
    }
    if (f->dir[0] != '\0') {
        (void)unlink(f->url + strlen("ipc://"));
        (void)rmdir(f->dir);
    }
    (void)pthread_mutex_unlock(&f->lock);
    (void)pthread_cond_destroy(&f->changed);
    (void)pthread_mutex_destroy(&f->lock);
    free(f->seen);
    free(f);
}

const char *fake_url(const struct fake *f)
{
    return f->url;
}

void fake_mode(struct fake *f, enum fake_mode mode)
{
    (void)pthread_mutex_lock(&f->lock);
    f->mode = mode;
    (void)pthread_mutex_unlock(&f->lock);
}

void fake_limit(struct fake *f, uint64_t max_inflight)
{
    (void)pthread_mutex_lock(&f->lock);
    f->max_inflight = max_inflight;
    (void)pthread_mutex_unlock(&f->lock);
}

void fake_results_first(struct fake *f, bool on)
{
    (void)pthread_mutex_lock(&f->lock);
    f->results_first = on;
    (void)pthread_mutex_unlock(&f->lock);
}

static struct slot *held_slot(struct fake *f, bool newest)
{
    struct slot *best = NULL;
    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot *s = &f->slots[i];
        if (s->msg != NULL &&
            (best == NULL || (newest ? s->order > best->order : s->order < best->order))) {
            best = s;
        }
    }
    return best;
}

void fake_release(struct fake *f, bool reverse)
{
    struct slot *s;
    (void)pthread_mutex_lock(&f->lock);
    f->mode = FAKE_SERVE;
    while ((s = held_slot(f, reverse)) != NULL) {
        union any msg;
        nng_msg *m = s->msg;
        unsigned kind = proto_kind(view(m));
        s->msg = NULL;
        check(proto_decode(schema_find(kind), view(m), &msg, NULL), "held request");
        serve(s, kind, &msg);
        nng_msg_free(m);
    }
    (void)pthread_mutex_unlock(&f->lock);
}

void fake_wait_held(struct fake *f, unsigned count)
{
    (void)pthread_mutex_lock(&f->lock);
    for (;;) {
        unsigned held = 0;
        for (unsigned i = 0; i < SLOTS; i++) {
            held += f->slots[i].msg != NULL ? 1 : 0;
        }
        if (held >= count) {
            break;
        }
        (void)pthread_cond_wait(&f->changed, &f->lock);
    }
    (void)pthread_mutex_unlock(&f->lock);
}

static void forget_held(struct fake *f)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot *s = &f->slots[i];
        if (s->msg != NULL) {
            nng_msg_free(s->msg);
            s->msg = NULL;
            receive(s);
        }
    }
    if (f->waiting != NULL) {
        receive(f->waiting);
        f->waiting = NULL;
    }
}

static void pipes_close(void)
{
    pipes.cut = true;
    nng_pipe list[64];
    (void)pthread_mutex_lock(&pipes.lock);
    unsigned count = pipes.count;
    pipes.count = 0;
    memcpy(list, pipes.pipes, sizeof list);
    (void)pthread_mutex_unlock(&pipes.lock);
    for (unsigned i = 0; i < count; i++) {
        (void)nng_pipe_close(list[i]);
    }
}

void fake_drop(struct fake *f)
{
    (void)pthread_mutex_lock(&f->lock);
    forget_held(f);
    (void)pthread_mutex_unlock(&f->lock);
    pipes_close();
}

void fake_restart(struct fake *f, bool adopts)
{
    (void)pthread_mutex_lock(&f->lock);
    f->life++;
    f->knows_session = adopts;
    f->event_number = 0;
    f->done_count = adopts ? f->done_count : 0; /* untaken results are told again */
    f->told = 0;
    forget_held(f);
    (void)pthread_mutex_unlock(&f->lock);
    pipes_close();
}

void fake_lose(struct fake *f, uint64_t handle)
{
    (void)pthread_mutex_lock(&f->lock);
    f->lost[f->lost_count++] = handle;
    events_send(f);
    (void)pthread_mutex_unlock(&f->lock);
}

static uint64_t locked(struct fake *f, const uint64_t *value)
{
    (void)pthread_mutex_lock(&f->lock);
    uint64_t v = *value;
    (void)pthread_mutex_unlock(&f->lock);
    return v;
}

#define GETTER(name)                                                                               \
    uint64_t fake_##name(struct fake *f)                                                           \
    {                                                                                              \
        return locked(f, &f->name);                                                                \
    }
GETTER(executed)

GETTER(twice)

GETTER(stale)

uint64_t fake_gaps(struct fake *f)
{
    uint64_t gaps = 0;
    (void)pthread_mutex_lock(&f->lock);
    for (uint64_t i = 1; i <= f->highest; i++) {
        gaps += f->seen[i] == 0 ? 1 : 0;
    }
    (void)pthread_mutex_unlock(&f->lock);
    return gaps;
}

uint64_t fake_live(struct fake *f)
{
    uint64_t live = 0;
    (void)pthread_mutex_lock(&f->lock);
    for (unsigned i = 0; i < BUFFERS; i++) {
        live += f->buffers[i].handle != 0 ? 1 : 0;
    }
    (void)pthread_mutex_unlock(&f->lock);
    return live;
}
