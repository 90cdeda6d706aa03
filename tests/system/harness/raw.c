#include "tests/system/harness/raw.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/seqpacket.h"

#define SP_HEAD     13u /* of a frame on ipc: a type, a length, a request id */
#define GATHER      65536u
#define OUTSTANDING 600u /* more would close the connection */

/* Every request begins with these. */
struct head {
    uint64_t seq, ack;
};

static void note(struct raw *c, struct bytes answer)
{
    struct msg_error error;
    struct msg_buffer buffer;
    struct msg_program program;
    struct msg_arena arena;
    struct msg_module module;
    uint64_t handle = 0;
    unsigned kind = proto_kind(answer);
    c->last = answer;
    c->told[kind]++;
    if (kind == MSG_KIND_ERROR && proto_decode(&schema_msg_error, answer, &error, NULL) == 0) {
        c->code = (int)error.code;
        (void)snprintf(c->text, sizeof c->text, "%.*s", (int)error.text.size,
                       (const char *)error.text.data);
    } else if (kind == MSG_KIND_BUFFER) {
        ck_assert_int_eq(proto_decode(&schema_msg_buffer, answer, &buffer, NULL), 0);
        handle = buffer.handle;
    } else if (kind == MSG_KIND_PROGRAM) {
        ck_assert_int_eq(proto_decode(&schema_msg_program, answer, &program, NULL), 0);
        handle = program.program;
    } else if (kind == MSG_KIND_ARENA) {
        ck_assert_int_eq(proto_decode(&schema_msg_arena, answer, &arena, NULL), 0);
        handle = arena.arena;
    } else if (kind == MSG_KIND_MODULE) {
        ck_assert_int_eq(proto_decode(&schema_msg_module, answer, &module, NULL), 0);
        handle = module.module;
    }
    if (handle != 0 && c->count == c->room) {
        c->room = c->room > 0 ? c->room * 2 : 1024;
        c->handles = realloc(c->handles, c->room * sizeof *c->handles);
        ck_assert_ptr_nonnull(c->handles);
    }
    if (handle != 0) {
        c->handles[c->count++] = handle;
    }
}

static uint64_t length_at(const uint8_t *head)
{
    uint64_t length = 0;
    for (unsigned i = 0; i < 8; i++) {
        length = length << 8 | head[1 + i];
    }
    return length - 4;
}

/* Takes whole frames out of the bytes read. */
static void take(struct raw *c)
{
    size_t at = 0;
    while (c->size - at >= SP_HEAD && c->size - at - SP_HEAD >= length_at(c->in + at)) {
        size_t length = (size_t)length_at(c->in + at);
        note(c, bytes_of(c->in + at + SP_HEAD, length));
        ck_assert_uint_gt(c->outstanding, 0);
        c->outstanding--;
        at += SP_HEAD + length;
        if (c->outstanding == 0) {
            break; /* `last` stays where it is */
        }
    }
    if (c->outstanding > 0) {
        memmove(c->in, c->in + at, c->size - at);
        c->size -= at;
    } else {
        c->size = 0;
    }
}

static void read_some(struct raw *c)
{
    if (c->in_room - c->size < GATHER) {
        c->in_room = c->in_room * 2 + GATHER;
        c->in = realloc(c->in, c->in_room);
        ck_assert_ptr_nonnull(c->in);
    }
    ssize_t n = recv(c->fd, c->in + c->size, c->in_room - c->size, MSG_DONTWAIT);
    ck_assert_msg(n > 0 || (n < 0 && errno == EAGAIN), "the daemon closed the connection");
    c->size += n > 0 ? (size_t)n : 0;
    take(c);
}

/* Sends the gathered bytes, and reads meanwhile. */
static void turn(struct raw *c, size_t *sent)
{
    bool more = *sent < c->out.size;
    struct pollfd p = {.fd = c->fd, .events = (short)(POLLIN | (more ? POLLOUT : 0))};
    ck_assert_int_gt(poll(&p, 1, (int)(PATIENCE / MS)), 0);
    if ((p.revents & POLLOUT) != 0) {
        ssize_t n =
            send(c->fd, c->out.data + *sent, c->out.size - *sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        ck_assert(n > 0 || (n < 0 && errno == EAGAIN));
        *sent += n > 0 ? (size_t)n : 0;
    }
    if ((p.revents & (POLLIN | POLLHUP)) != 0) {
        read_some(c);
    }
}

static void flush(struct raw *c)
{
    size_t sent = 0;
    while (sent < c->out.size) {
        turn(c, &sent);
    }
    capbuf_reset(&c->out);
}

void raw_send(struct raw *c, const struct schema *schema, void *msg, bool sequenced)
{
    uint8_t head[SP_HEAD] = {1};
    struct head *h = msg;
    c->ack = c->hoards ? c->ack : c->seq - 1 - (c->outstanding < c->seq ? c->outstanding : 0);
    h->seq = sequenced ? c->seq++ : 0;
    h->ack = c->ack;
    size_t at = c->out.size;
    ck_assert(capbuf_append(&c->out, head, sizeof head));
    ck_assert_int_eq(proto_encode(schema, msg, &c->out, NULL), 0);
    uint64_t length = c->out.size - at - sizeof head + 4;
    for (unsigned i = 0; i < 8; i++) {
        c->out.data[at + 1 + i] = (uint8_t)(length >> (56 - 8 * i));
    }
    c->out.data[at + 9] = 0x80;
    c->outstanding++;
    if (c->outstanding >= OUTSTANDING) {
        raw_await(c, OUTSTANDING / 2);
    } else if (c->out.size > GATHER) {
        flush(c);
    }
}

void raw_await(struct raw *c, unsigned outstanding)
{
    size_t none = 0;
    flush(c);
    while (c->outstanding > outstanding) {
        turn(c, &none);
    }
}

void raw_drain(struct raw *c)
{
    raw_await(c, 0);
}

unsigned raw_ask(struct raw *c, const struct schema *schema, void *msg, bool sequenced)
{
    raw_drain(c);
    raw_send(c, schema, msg, sequenced);
    raw_drain(c);
    return proto_kind(c->last);
}

unsigned raw_claim(const char *path, struct bytes nonce)
{
    struct err e = ERR_INIT;
    struct capbuf out;
    struct msg_claim claim = {.nonce = nonce};
    struct frame_fds got = {.count = 0};
    struct pollfd p = {.fd = -1, .events = POLLIN};
    uint8_t answer[4096];
    size_t size = 0;
    capbuf_init(&out, 256);
    ck_assert_int_eq(proto_encode(&schema_msg_claim, &claim, &out, NULL), 0);
    ck_assert_int_eq(seqpacket_connect(path, &p.fd, &e), 0);
    ck_assert_int_eq(send(p.fd, out.data, out.size, MSG_NOSIGNAL), (ssize_t)out.size);
    ck_assert_int_gt(poll(&p, 1, (int)(PATIENCE / MS)), 0);
    int rc = seqpacket_recv(p.fd, answer, sizeof answer, &size, &got, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    for (int i = 0; i < got.count; i++) {
        (void)close(got.fd[i]);
    }
    (void)close(p.fd);
    capbuf_finish(&out);
    return proto_kind(bytes_of(answer, size));
}

void raw_reset(struct raw *c)
{
    memset(c->told, 0, sizeof c->told);
    c->count = 0;
    c->code = 0;
}

void raw_open(struct raw *c, const char *url, unsigned id)
{
    raw_resume(c, url, id, 1);
}

void raw_resume(struct raw *c, const char *url, unsigned id, uint64_t seq)
{
    static const uint8_t greeting[8] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
    uint8_t theirs[8];
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    uint8_t client_id[PROTO_CLIENT_ID_BYTES] = {'r', (uint8_t)id, (uint8_t)(id >> 8)};
    struct msg_hello hello = {
        .major = PROTO_MAJOR, .client_id = bytes_of(client_id, sizeof client_id), .resume = seq};
    *c = (struct raw){.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), .seq = seq};
    capbuf_init(&c->out, 64u * 1024 * 1024);
    (void)snprintf(un.sun_path, sizeof un.sun_path, "%s", url + strlen("ipc://"));
    ck_assert_int_eq(connect(c->fd, (struct sockaddr *)&un, sizeof un), 0);
    ck_assert_int_eq(send(c->fd, greeting, sizeof greeting, MSG_NOSIGNAL), sizeof greeting);
    ck_assert_int_eq(recv(c->fd, theirs, sizeof theirs, MSG_WAITALL), sizeof theirs);
    ck_assert_uint_eq(raw_ask(c, &schema_msg_hello, &hello, false), MSG_KIND_WELCOME);
    raw_reset(c);
}

void raw_close(struct raw *c)
{
    (void)close(c->fd);
    free(c->handles);
    free(c->in);
    capbuf_finish(&c->out);
}
