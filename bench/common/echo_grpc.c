/* An empty unary call of gRPC over a unix socket: core API, asynchronous server, one queue each. */
#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/time.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/common/echo.h"

#define METHOD   "/bench.Echo/Empty"
#define CONTEXTS 128u

/* ---- server -------------------------------------------------------------------------------- */

struct served {
    grpc_call *call;
    gpr_timespec deadline;
    grpc_metadata_array metadata;
    grpc_byte_buffer *request;
    grpc_byte_buffer *reply;
    int cancelled;
    bool answering;
};

struct server {
    grpc_server *server;
    grpc_completion_queue *queue;
    void *method;
};

static grpc_byte_buffer *empty_buffer(void)
{
    grpc_slice none = grpc_empty_slice();
    return grpc_raw_byte_buffer_create(&none, 1);
}

static void await_call(const struct server *s, struct served *x)
{
    x->answering = false;
    x->request = NULL;
    grpc_metadata_array_init(&x->metadata);
    if (grpc_server_request_registered_call(s->server, s->method, &x->call, &x->deadline,
                                            &x->metadata, &x->request, s->queue, s->queue,
                                            x) != GRPC_CALL_OK) {
        bench_die("gRPC: a server's call");
    }
}

static void answer(struct served *x)
{
    grpc_op op[4];
    memset(op, 0, sizeof op);
    x->answering = true;
    x->reply = empty_buffer();
    op[0].op = GRPC_OP_SEND_INITIAL_METADATA;
    op[1].op = GRPC_OP_SEND_MESSAGE;
    op[1].data.send_message.send_message = x->reply;
    op[2].op = GRPC_OP_SEND_STATUS_FROM_SERVER;
    op[2].data.send_status_from_server.status = GRPC_STATUS_OK;
    op[3].op = GRPC_OP_RECV_CLOSE_ON_SERVER;
    op[3].data.recv_close_on_server.cancelled = &x->cancelled;
    if (grpc_call_start_batch(x->call, op, 4, x, NULL) != GRPC_CALL_OK) {
        bench_die("gRPC: an answer");
    }
}

static void finish_call(struct served *x)
{
    grpc_byte_buffer_destroy(x->reply);
    grpc_byte_buffer_destroy(x->request);
    grpc_metadata_array_destroy(&x->metadata);
    grpc_call_unref(x->call);
}

static void serve(const char *address)
{
    static struct served calls[CONTEXTS];
    struct server s;
    char target[160];
    (void)snprintf(target, sizeof target, "unix:%s", address);
    grpc_init();
    s.server = grpc_server_create(NULL, NULL);
    s.queue = grpc_completion_queue_create_for_next(NULL);
    s.method = grpc_server_register_method(s.server, METHOD, NULL,
                                           GRPC_SRM_PAYLOAD_READ_INITIAL_BYTE_BUFFER, 0);
    grpc_server_register_completion_queue(s.server, s.queue, NULL);
    if (grpc_server_add_http2_port(s.server, target, grpc_insecure_server_credentials_create()) ==
        0) {
        bench_die("gRPC: listening on %s", target);
    }
    grpc_server_start(s.server);
    for (unsigned i = 0; i < CONTEXTS; i++) {
        await_call(&s, &calls[i]);
    }
    for (;;) {
        grpc_event ev =
            grpc_completion_queue_next(s.queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
        struct served *x = ev.tag;
        if (ev.type != GRPC_OP_COMPLETE || x == NULL) {
            bench_die("gRPC: the server's queue ended");
        }
        if (!x->answering) {
            answer(x);
        } else {
            finish_call(x);
            await_call(&s, x);
        }
    }
}

/* ---- client -------------------------------------------------------------------------------- */

struct slot {
    grpc_call *call;
    grpc_metadata_array initial;
    grpc_metadata_array trailing;
    grpc_byte_buffer *reply;
    grpc_status_code status;
    grpc_slice details;
    bool done;
};

struct echo {
    grpc_channel *channel;
    grpc_completion_queue *queue;
    void *method;
    grpc_byte_buffer *request;
    struct slot slot[ECHO_SLOTS];
};

static struct echo *open_client(const char *address, unsigned outstanding)
{
    char target[160];
    struct echo *c = calloc(1, sizeof *c);
    if (c == NULL) {
        bench_die("no memory");
    }
    (void)outstanding;
    (void)snprintf(target, sizeof target, "unix:%s", address);
    grpc_init();
    grpc_channel_credentials *open = grpc_insecure_credentials_create();
    c->channel = grpc_channel_create(target, open, NULL);
    grpc_channel_credentials_release(open);
    c->queue = grpc_completion_queue_create_for_next(NULL);
    c->method = grpc_channel_register_call(c->channel, METHOD, "localhost", NULL);
    c->request = empty_buffer();
    return c;
}

static void begin(struct echo *c, unsigned slot)
{
    struct slot *s = &c->slot[slot];
    grpc_op op[6];
    memset(op, 0, sizeof op);
    s->done = false;
    s->reply = NULL;
    grpc_metadata_array_init(&s->initial);
    grpc_metadata_array_init(&s->trailing);
    s->call =
        grpc_channel_create_registered_call(c->channel, NULL, GRPC_PROPAGATE_DEFAULTS, c->queue,
                                            c->method, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    op[0].op = GRPC_OP_SEND_INITIAL_METADATA;
    op[0].flags = GRPC_INITIAL_METADATA_WAIT_FOR_READY;
    op[1].op = GRPC_OP_SEND_MESSAGE;
    op[1].data.send_message.send_message = c->request;
    op[2].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
    op[3].op = GRPC_OP_RECV_INITIAL_METADATA;
    op[3].data.recv_initial_metadata.recv_initial_metadata = &s->initial;
    op[4].op = GRPC_OP_RECV_MESSAGE;
    op[4].data.recv_message.recv_message = &s->reply;
    op[5].op = GRPC_OP_RECV_STATUS_ON_CLIENT;
    op[5].data.recv_status_on_client.trailing_metadata = &s->trailing;
    op[5].data.recv_status_on_client.status = &s->status;
    op[5].data.recv_status_on_client.status_details = &s->details;
    if (grpc_call_start_batch(s->call, op, 6, s, NULL) != GRPC_CALL_OK) {
        bench_die("gRPC: a call");
    }
}

static void take(struct echo *c, unsigned slot)
{
    struct slot *s = &c->slot[slot];
    while (!s->done) {
        grpc_event ev =
            grpc_completion_queue_next(c->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
        struct slot *other = ev.tag;
        if (ev.type != GRPC_OP_COMPLETE || other == NULL) {
            bench_die("gRPC: the client's queue ended");
        }
        other->done = true;
    }
    if (s->status != GRPC_STATUS_OK || s->reply == NULL) {
        bench_die("gRPC: a call ended with %d", (int)s->status);
    }
    grpc_byte_buffer_destroy(s->reply);
    grpc_slice_unref(s->details);
    grpc_metadata_array_destroy(&s->initial);
    grpc_metadata_array_destroy(&s->trailing);
    grpc_call_unref(s->call);
}

static void close_client(struct echo *c)
{
    grpc_byte_buffer_destroy(c->request);
    grpc_channel_destroy(c->channel);
    free(c); /* without a wait for gRPC's threads: the process ends next */
}

const struct echo_kind echo_grpc = {
    .name = "grpc",
    .what = "gRPC over a unix socket, an empty unary call, asynchronous server",
    .serve = serve,
    .open = open_client,
    .send = begin,
    .take = take,
    .close = close_client,
};
