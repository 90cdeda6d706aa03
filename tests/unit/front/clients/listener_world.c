#include "tests/unit/front/clients/listener_world.h"

#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <nng/protocol/reqrep0/req.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"

struct world w;

/* ---- the server's side ---------------------------------------------------------------------- */

static void pong(struct request *r, uint64_t value)
{
    struct msg_pong msg = {.value = value};
    struct capbuf out;
    struct err e = ERR_INIT;
    capbuf_init(&out, 256);
    ck_assert_int_eq(proto_encode(&schema_msg_pong, &msg, &out, &e), 0);
    struct listener_slot *slot = r->slot;
    request_destroy(r);
    listener_reply(w.listener, slot, capbuf_view(&out));
    capbuf_finish(&out);
}

static void release(void)
{
    while (w.held_count > 0) {
        struct request *r = w.held[--w.held_count];
        pong(r, r->msg.ping.value);
    }
}

static void drop(struct request *r)
{
    listener_drop(w.listener, r->slot);
    request_destroy(r);
}

static void answer_long(struct request *r)
{
    static uint8_t bytes[LONG_BYTES];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i % 251);
    }
    listener_reply(w.listener, r->slot, bytes_of(bytes, sizeof bytes));
    request_destroy(r);
}

static void on_ping(struct request *r)
{
    uint64_t value = r->msg.ping.value;
    if (value >= DO_HOLD && value < DO_RELEASE) {
        ck_assert_uint_lt(w.held_count, HELD_MAX);
        w.held[w.held_count++] = r;
        return;
    }
    switch (value) {
    case DO_RELEASE:
        release();
        break;
    case DO_DROP:
        drop(r);
        return;
    case DO_CLOSE:
        listener_close_pipe(w.listener, r->peer.pipe);
        drop(r);
        return;
    case DO_AWAIT_END:
        if (w.ends == 0) {
            w.waiter = r;
            return;
        }
        break;
    case DO_LONG:
        answer_long(r);
        return;
    case DO_COUNT_UNREAD:
        listener_stats(w.listener, &w.stats);
        value = w.stats.unread;
        break;
    case DO_COUNT_HELD:
        value = w.held_count;
        break;
    default:
        break;
    }
    pong(r, value);
}

static void on_request(void *data, struct request *r)
{
    ck_assert_ptr_eq(data, &w);
    ck_assert_uint_ne(r->peer.pipe, 0);
    w.last_peer = r->peer;
    if (r->kind == MSG_KIND_PING) {
        on_ping(r);
        return;
    }
    ck_assert_uint_eq(r->kind, MSG_KIND_HELLO);
    listener_identified(w.listener, r->peer.pipe);
    pong(r, r->peer.pipe);
}

static void on_closed(void *data, uint32_t pipe)
{
    ck_assert_ptr_eq(data, &w);
    ck_assert_uint_ne(pipe, 0);
    w.ends++;
    release();
    if (w.waiter != NULL) {
        struct request *r = w.waiter;
        w.waiter = NULL;
        pong(r, DO_AWAIT_END);
    }
}

static const struct listener_callbacks callbacks = {.request = on_request, .closed = on_closed};

static void on_listener_closed(void *data)
{
    (void)data;
    w.closed = true;
}

static void on_finished(uv_async_t *async)
{
    listener_stats(w.listener, &w.stats);
    listener_close(w.listener, on_listener_closed, NULL);
    uv_close((uv_handle_t *)async, NULL);
    uv_close((uv_handle_t *)&w.turn, NULL);
}

static void on_turn(uv_prepare_t *turn)
{
    (void)turn;
    w.turns++;
}

static void *client_main(void *data)
{
    (void)data;
    w.client(&w);
    (void)uv_async_send(&w.finished);
    return NULL;
}

const struct listener_options usual = {
    .requests_max = 128, .connections_max = 64, .handshake_ns = NS_NEVER, .ipc_mode = 0660};

void start(const struct listener_options *options)
{
    struct err e = ERR_INIT;
    memset(&w, 0, sizeof w);
    scratch_make(w.dir);
    (void)snprintf(w.url, sizeof w.url, "ipc://%s/s", w.dir);
    ck_assert_int_eq(uv_loop_init(&w.loop), 0);
    ck_assert_int_eq(listener_create(&w.loop, options, &callbacks, &w, &w.listener, &e), 0);
    ck_assert_msg(listener_add(w.listener, w.url, &e) == 0, "%s", e.text);
}

void serve(void (*client)(struct world *w))
{
    ck_assert_int_eq(uv_async_init(&w.loop, &w.finished, on_finished), 0);
    ck_assert_int_eq(uv_prepare_init(&w.loop, &w.turn), 0);
    ck_assert_int_eq(uv_prepare_start(&w.turn, on_turn), 0);
    w.client = client;
    ck_assert_int_eq(pthread_create(&w.thread, NULL, client_main, NULL), 0);
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(pthread_join(w.thread, NULL), 0);
    ck_assert(w.closed);
    while (w.held_count > 0) {
        request_destroy(w.held[--w.held_count]);
    }
    listener_destroy(w.listener);
    ck_assert_int_eq(uv_loop_close(&w.loop), 0);
    scratch_remove(w.dir);
}

/* ---- clients -------------------------------------------------------------------------------- */

/* NNG gives up at once where the kernel's queue of connections not yet accepted is full. */
nng_socket dial(const char *url)
{
    const struct timespec pause = {0, 1000000};
    nng_socket s;
    ck_assert_int_eq(nng_req0_open(&s), 0);
    ck_assert_int_eq(nng_socket_set_ms(s, NNG_OPT_REQ_RESENDTIME, NNG_DURATION_INFINITE), 0);
    ck_assert_int_eq(nng_socket_set_size(s, NNG_OPT_RECVMAXSZ, 1 << 20), 0);
    int rc = nng_dial(s, url, NULL, 0);
    for (; rc == NNG_EAGAIN; rc = nng_dial(s, url, NULL, 0)) {
        nanosleep(&pause, NULL);
    }
    ck_assert_int_eq(rc, 0);
    return s;
}

size_t encode(const struct schema *schema, const void *msg, uint8_t out[512])
{
    struct capbuf b;
    struct err e = ERR_INIT;
    capbuf_init(&b, 512);
    ck_assert_int_eq(proto_encode(schema, msg, &b, &e), 0);
    memcpy(out, b.data, b.size);
    size_t size = b.size;
    capbuf_finish(&b);
    return size;
}

void post(nng_socket s, const void *data, size_t size)
{
    ck_assert_int_eq(nng_send(s, (void *)(uintptr_t)data, size, 0), 0);
}

void post_ping(nng_socket s, uint64_t value)
{
    uint8_t out[512];
    struct msg_ping ping = {.value = value};
    post(s, out, encode(&schema_msg_ping, &ping, out));
}

uint64_t pong_of(const void *data, size_t size)
{
    struct msg_pong msg;
    struct err e = ERR_INIT;
    ck_assert_msg(proto_decode(&schema_msg_pong, bytes_of(data, size), &msg, &e) == 0, "%s",
                  e.text);
    return msg.value;
}

uint64_t take_pong(nng_socket s)
{
    char *data = NULL;
    size_t size = 0;
    ck_assert_int_eq(nng_recv(s, &data, &size, NNG_FLAG_ALLOC), 0);
    uint64_t value = pong_of(data, size);
    nng_free(data, size);
    return value;
}

uint64_t ask(nng_socket s, uint64_t value)
{
    post_ping(s, value);
    return take_pong(s);
}

uint64_t say_hello(nng_socket s)
{
    uint8_t out[512];
    uint8_t id[PROTO_CLIENT_ID_BYTES] = {1};
    struct msg_hello hello = {.major = PROTO_MAJOR, .client_id = bytes_of(id, sizeof id)};
    post(s, out, encode(&schema_msg_hello, &hello, out));
    return take_pong(s);
}

void bare_greet(int fd)
{
    static const uint8_t sp_req[8] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
    ck_assert(send(fd, sp_req, sizeof sp_req, MSG_NOSIGNAL) == sizeof sp_req || errno == EPIPE);
}

int bare(const struct world *world, bool negotiate)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/s", world->dir);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    if (negotiate) {
        uint8_t theirs[8];
        bare_greet(fd);
        ck_assert_int_eq(recv(fd, theirs, sizeof theirs, MSG_WAITALL), sizeof theirs);
        ck_assert_uint_eq(theirs[5], 0x31);
    }
    return fd;
}

/* A message of the transport: type, length, request id, then the bytes. Who crowds is closed. */
void bare_send(int fd, const void *data, size_t size, uint64_t claimed)
{
    uint8_t out[1024] = {1};
    for (unsigned i = 0; i < 8; i++) {
        out[1 + i] = (uint8_t)(claimed >> (56 - 8 * i));
    }
    out[9] = 0x80;
    out[12] = 1;
    ck_assert_uint_le(size, sizeof out - 13);
    memcpy(out + 13, data, size);
    ck_assert(send(fd, out, 13 + size, MSG_NOSIGNAL) == (ssize_t)(13 + size) || errno == EPIPE);
}

void bare_ping(int fd, uint64_t value)
{
    uint8_t out[512];
    struct msg_ping ping = {.value = value};
    size_t size = encode(&schema_msg_ping, &ping, out);
    bare_send(fd, out, size, 4 + size);
}

void await_end(int fd)
{
    uint8_t rest[64];
    while (recv(fd, rest, sizeof rest, 0) > 0) {
    }
    (void)close(fd);
}

void client_asks(struct world *world)
{
    nng_socket s = dial(world->url);
    for (uint64_t i = 0; i < 50; i++) {
        ck_assert_uint_eq(ask(s, i), i);
    }
    nng_close(s);
}

void answered_by_error(nng_socket s, const uint8_t *bad, size_t bad_size, int code)
{
    char *data = NULL;
    size_t size = 0;
    post(s, bad, bad_size);
    ck_assert_int_eq(nng_recv(s, &data, &size, NNG_FLAG_ALLOC), 0);
    struct msg_error msg;
    struct err e = ERR_INIT;
    ck_assert_int_eq(proto_decode(&schema_msg_error, bytes_of(data, size), &msg, &e), 0);
    ck_assert_int_eq(msg.code, code);
    ck_assert_uint_gt(msg.text.size, 0);
    nng_free(data, size);
}

unsigned free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&a, sizeof a), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &size), 0);
    (void)close(fd);
    return ntohs(a.sin_port);
}
