/*
 * Runs the client of tests/system against a stand-in for the daemon: NNG's REP socket, libproto
 * and just enough behind them. protocol_server ipc|tcp PROGRAM ARGS…; the URL is added at the end.
 * Exits as the client did.
 */
#include <errno.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/shape.h"
#include "proto/codec.h"

#define ARGS_MAX 8
#define HANDLE   0x100000001u
#define COUNT    4096u /* elements of the one buffer */

extern char **environ;

struct server {
    nng_socket socket;
    struct capbuf reply;
    float buffer[COUNT];
    bool freed;
    bool bye;
};

static void put(struct server *s, const struct schema *schema, const void *msg)
{
    if (proto_encode(schema, msg, &s->reply, NULL) != 0) {
        abort();
    }
}

static void put_error(struct server *s, int code, const char *text)
{
    struct err e = ERR_INIT;
    struct msg_error m;
    (void)err_set(&e, code, "%s", text);
    proto_error_from(&e, &m);
    put(s, &schema_msg_error, &m);
}

/* The elements that an argument stands for; a copy for inline ones. */
static float *elements(struct server *s, const struct proto_arg *arg, float *own, size_t *ret_count)
{
    *ret_count = arg->count;
    if (arg->tag == ARG_BUFFER) {
        return arg->handle == HANDLE && arg->first + arg->count <= COUNT ? s->buffer + arg->first
                                                                         : NULL;
    }
    *ret_count = arg->data.size / sizeof(float);
    if (arg->tag != ARG_INLINE || *ret_count > COUNT || arg->d0 != *ret_count) {
        return NULL;
    }
    memcpy(own, arg->data.data, arg->data.size);
    return own;
}

static bool output_add(const float *data, size_t count, uint64_t step, uint64_t arg,
                       struct capbuf *outputs)
{
    struct proto_output o = {
        .step = step, .arg = arg, .data = bytes_of(data, count * sizeof(float))};
    return proto_list_add(&schema_output, &o, outputs, NULL) == 0;
}

/* y = a x + y */
static void axpy(const struct proto_arg *scalar, const float *x, float *y, size_t count)
{
    float a = 0;
    memcpy(&a, &scalar->bits, sizeof a);
    for (size_t i = 0; i < count; i++) {
        y[i] += a * x[i];
    }
}

static bool step_run(struct server *s, const struct proto_step *step, uint64_t index,
                     struct capbuf *outputs, uint64_t *io_outputs)
{
    static float own[3][COUNT];
    struct proto_arg args[3];
    float *at[3] = {0};
    size_t counts[3] = {0};
    struct proto_iter it = proto_iter_of(step->args);
    size_t n = 0;
    for (; n < 3 && proto_list_next(&it, &schema_arg, &args[n]); n++) {
        at[n] = elements(s, &args[n], own[n], &counts[n]);
        if (at[n] == NULL && args[n].tag != ARG_SCALAR) {
            return false;
        }
    }
    if (step->op == OP_WRITE && n == 2) {
        memcpy(at[0], at[1], counts[1] * sizeof(float));
        return true;
    }
    *io_outputs += 1;
    if (step->op == OP_READ && n == 1) {
        return output_add(at[0], counts[0], index, 0, outputs);
    }
    if (step->op == OP_LAUNCH && n == 3 && counts[1] == counts[2]) {
        axpy(&args[0], at[1], at[2], counts[2]);
        return output_add(at[2], counts[2], index, 2, outputs);
    }
    return false;
}

static void submit(struct server *s, const struct msg_submit *m)
{
    struct capbuf outputs;
    struct capbuf records;
    capbuf_init(&outputs, PROTO_INLINE_MAX);
    capbuf_init(&records, PROTO_INLINE_MAX);
    struct proto_result r = {.job = m->seq, .step = -1, .arg = -1, .device = 1};
    struct proto_iter it = proto_iter_of(m->steps);
    struct proto_step step;
    uint64_t count = 0;
    for (uint64_t i = 0; proto_list_next(&it, &schema_step, &step); i++) {
        if (!step_run(s, &step, i, &outputs, &count)) {
            r.code = ERR_INVALID;
        }
    }
    r.outputs = proto_list_of(&outputs, count);
    if (proto_list_add(&schema_result, &r, &records, NULL) != 0) {
        abort();
    }
    struct msg_results reply = {.results = proto_list_of(&records, 1)};
    put(s, &schema_msg_results, &reply);
    capbuf_finish(&outputs);
    capbuf_finish(&records);
}

static void kernel_find(struct server *s)
{
    struct capbuf kernels;
    capbuf_init(&kernels, 4096);
    struct proto_kernel kernel = {.handle = 5, .name = bytes_str("axpy")};
    if (proto_list_add(&schema_kernel, &kernel, &kernels, NULL) != 0) {
        abort();
    }
    struct msg_kernel_found m = {.kernels = proto_list_of(&kernels, 1)};
    put(s, &schema_msg_kernel_found, &m);
    capbuf_finish(&kernels);
}

union request {
    struct msg_hello hello;
    struct msg_ping ping;
    struct msg_submit submit;
    uint64_t room[64];
};

static void answer(struct server *s, unsigned kind, const union request *r)
{
    static const uint8_t id[PROTO_CLIENT_ID_BYTES] = {1};
    struct msg_done done = {0};
    switch (kind) {
    case MSG_KIND_HELLO:
        put(s, &schema_msg_welcome,
            &(struct msg_welcome){
                .minor = 1, .daemon_id = bytes_of(id, sizeof id), .expect = r->hello.resume});
        break;
    case MSG_KIND_PING:
        put(s, &schema_msg_pong, &(struct msg_pong){.value = r->ping.value});
        break;
    case MSG_KIND_BUFFER_CREATE:
        put(s, &schema_msg_buffer, &(struct msg_buffer){.handle = HANDLE, .dtype = DTYPE_F32});
        break;
    case MSG_KIND_BUFFER_FREE:
        if (s->freed) {
            put_error(s, ERR_STALE_HANDLE, "freed before");
        } else {
            put(s, &schema_msg_done, &done);
        }
        s->freed = true;
        break;
    case MSG_KIND_KERNEL_FIND:
        kernel_find(s);
        break;
    case MSG_KIND_SUBMIT:
        submit(s, &r->submit);
        break;
    case MSG_KIND_BYE:
        s->bye = true;
        put(s, &schema_msg_done, &done);
        break;
    default:
        put_error(s, ERR_UNSUPPORTED, "not played here");
        break;
    }
}

static int serve_one(struct server *s)
{
    nng_msg *msg = NULL;
    int rc = nng_recvmsg(s->socket, &msg, 0);
    if (rc != 0) {
        (void)fprintf(stderr, "receive: %s\n", nng_strerror(rc));
        return -1;
    }
    struct bytes message = bytes_of(nng_msg_body(msg), nng_msg_len(msg));
    const struct schema *schema = schema_find(proto_kind(message));
    union request r;
    struct err e = ERR_INIT;
    capbuf_reset(&s->reply);
    if (schema == NULL || schema->size > sizeof r) {
        put_error(s, ERR_PROTOCOL, "unknown kind");
    } else if (proto_decode(schema, message, &r, &e) != 0) {
        (void)fprintf(stderr, "%s\n", e.text);
        put_error(s, ERR_PROTOCOL, e.text);
    } else {
        answer(s, schema->kind, &r);
    }
    nng_msg_free(msg);
    return nng_send(s->socket, s->reply.data, s->reply.size, 0);
}

static int listen_on(struct server *s, const char *transport, const char *folder, char *url,
                     size_t size)
{
    bool ipc = strcmp(transport, "ipc") == 0;
    nng_listener listener;
    (void)snprintf(url, size, ipc ? "ipc://%s/socket" : "tcp://127.0.0.1:0", folder);
    if (nng_rep0_open(&s->socket) != 0 ||
        nng_socket_set_size(s->socket, NNG_OPT_RECVMAXSZ, PROTO_MESSAGE_MAX + 4) != 0 ||
        nng_socket_set_ms(s->socket, NNG_OPT_RECVTIMEO, 60000) != 0 ||
        nng_listen(s->socket, url, &listener, 0) != 0) {
        return -1;
    }
    int port = 0;
    if (!ipc && nng_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &port) != 0) {
        return -1;
    }
    if (!ipc) {
        (void)snprintf(url, size, "tcp://127.0.0.1:%d", port);
    }
    return 0;
}

static int run_client(struct server *s, char **argv, char *url)
{
    char *args[ARGS_MAX + 2] = {0};
    size_t n = 0;
    for (; argv[n] != NULL && n < ARGS_MAX; n++) {
        args[n] = argv[n];
    }
    args[n] = url;
    pid_t pid = 0;
    int status = 0;
    if (posix_spawnp(&pid, args[0], NULL, NULL, args, environ) != 0) {
        perror(args[0]);
        return EXIT_FAILURE;
    }
    /* what follows BYE is only the client's end */
    while (!s->bye && serve_one(s) == 0 && waitpid(pid, &status, WNOHANG) == 0) {
    }
    if (s->bye) {
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
    }
    return s->bye && WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    static struct server server;
    char folder[] = "/tmp/gpud-protocol-XXXXXX";
    char url[128];
    if (argc < 3 || mkdtemp(folder) == NULL) {
        (void)fprintf(stderr, "usage: %s ipc|tcp PROGRAM ARGS...\n", argv[0]);
        return EXIT_FAILURE;
    }
    capbuf_init(&server.reply, PROTO_MESSAGE_MAX);
    int rc = EXIT_FAILURE;
    if (listen_on(&server, argv[1], folder, url, sizeof url) == 0) {
        rc = run_client(&server, argv + 2, url);
    } else {
        (void)fprintf(stderr, "cannot listen on %s\n", url);
    }
    (void)nng_close(server.socket);
    capbuf_finish(&server.reply);
    (void)rmdir(folder);
    return rc;
}
