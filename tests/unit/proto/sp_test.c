#include <arpa/inet.h>
#include <check.h>
#include <malloc.h>
#include <netinet/in.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "proto/sp.h"

#define LIMIT 100000

static size_t put(uint8_t *at, enum sp_transport transport, uint32_t id, const char *text)
{
    size_t size = sp_head(transport, id, strlen(text), at);
    memcpy(at + size, text, strlen(text));
    return size + strlen(text);
}

static void expect(struct message *m, uint32_t id, const char *text)
{
    ck_assert_uint_eq(m->id, id);
    ck_assert(bytes_equal_str(message_view(m), text));
    message_unref(m);
}

START_TEST(bytes_on_the_wire)
{
    uint8_t out[64];
    sp_hello(SP_REQ, out);
    ck_assert_mem_eq(out, "\0SP\0\0\x30\0\0", 8);
    ck_assert_uint_eq(put(out, SP_IPC, 0x80000102u, "ab"), 15);
    ck_assert_mem_eq(out,
                     "\x01\0\0\0\0\0\0\0\x06\x80\0\x01\x02"
                     "ab",
                     15);
    ck_assert_uint_eq(put(out, SP_TCP, 0x80000102u, "ab"), 14);
    ck_assert_mem_eq(out,
                     "\0\0\0\0\0\0\0\x06\x80\0\x01\x02"
                     "ab",
                     14);
}
END_TEST

/* Whatever the pieces in which a stream arrives, the same messages come out. */
START_TEST(any_pieces)
{
    enum sp_transport transport = _i % 2 == 0 ? SP_IPC : SP_TCP;
    size_t piece = (size_t)_i / 2 + 1;
    uint8_t stream[256];
    sp_hello(SP_REP, stream);
    size_t size = SP_HELLO_BYTES;
    size += put(stream + size, transport, 0x80000001u, "one");
    size += put(stream + size, transport, 0xffffffffu, "");
    size += put(stream + size, transport, 0x80000002u, "a longer message, the third");
    struct sp_reader r;
    struct err e = ERR_INIT;
    struct message *got[3] = {0};
    unsigned count = 0;
    sp_reader_init(&r, transport, SP_REP, LIMIT);
    for (size_t at = 0; at < size; at += piece) {
        struct bytes in = bytes_of(stream + at, size - at < piece ? size - at : piece);
        int rc;
        while ((rc = sp_read(&r, &in, &got[count < 3 ? count : 0], &e)) > 0) {
            count++;
        }
        ck_assert_int_eq(rc, 0);
        ck_assert_uint_eq(in.size, 0);
    }
    ck_assert_uint_eq(count, 3);
    expect(got[0], 0x80000001u, "one");
    expect(got[1], 0xffffffffu, "");
    expect(got[2], 0x80000002u, "a longer message, the third");
    sp_reader_finish(&r);
}
END_TEST

START_TEST(received_in_place)
{
    uint8_t stream[64];
    struct sp_reader r;
    struct message *m = NULL;
    size_t room = 0;
    sp_hello(SP_REP, stream);
    size_t size = SP_HELLO_BYTES + put(stream + SP_HELLO_BYTES, SP_IPC, 0x80000007u, "abcdef");
    sp_reader_init(&r, SP_IPC, SP_REP, LIMIT);
    ck_assert_ptr_null(sp_direct(&r, &room));
    struct bytes in = bytes_of(stream, size - 4);
    ck_assert_int_eq(sp_read(&r, &in, &m, NULL), 0);
    ck_assert(!sp_between(&r));
    uint8_t *at = sp_direct(&r, &room);
    ck_assert_ptr_nonnull(at);
    ck_assert_uint_eq(room, 4);
    memcpy(at, "cdef", 3);
    ck_assert_int_eq(sp_direct_done(&r, 3, &m, NULL), 0);
    at = sp_direct(&r, &room);
    ck_assert_uint_eq(room, 1);
    *at = 'f';
    ck_assert_int_eq(sp_direct_done(&r, 1, &m, NULL), 1);
    ck_assert(sp_between(&r));
    expect(m, 0x80000007u, "abcdef");
    sp_reader_finish(&r);
}
END_TEST

/* The announced size takes no memory; received bytes take at most twice their size, and the first
 * room. */
START_TEST(memory_follows_what_has_come)
{
    enum { SIZE = 90001, PIECE = 700 };
    static uint8_t piece[PIECE];
    uint8_t stream[SP_HELLO_BYTES + SP_HEAD_MAX];
    struct sp_reader r;
    struct message *m = NULL;
    size_t come = 0;
    int rc = 0;
    memset(piece, 7, sizeof piece);
    sp_hello(SP_REP, stream);
    size_t size = SP_HELLO_BYTES + sp_head(SP_IPC, 0x80000009u, SIZE, stream + SP_HELLO_BYTES);
    sp_reader_init(&r, SP_IPC, SP_REP, LIMIT);
    struct bytes in = bytes_of(stream, size);
    ck_assert_int_eq(sp_read(&r, &in, &m, NULL), 0);
    ck_assert_uint_le(malloc_usable_size(r.body), 8192 + 64);
    while (rc == 0) {
        size_t n = SIZE - come < PIECE ? SIZE - come : PIECE;
        size_t room = 0;
        uint8_t *at = sp_direct(&r, &room);
        if (come % 3 == 0 && room >= n) { /* in place, or through the reader: the same */
            memcpy(at, piece, n);
            rc = sp_direct_done(&r, n, &m, NULL);
        } else {
            in = bytes_of(piece, n);
            rc = sp_read(&r, &in, &m, NULL);
            ck_assert_uint_eq(in.size, 0);
        }
        come += n;
        ck_assert(rc != 0 || malloc_usable_size(r.body) <= 2 * come + 8192 + 4096);
    }
    ck_assert_int_eq(rc, 1);
    ck_assert_uint_eq(m->size, SIZE);
    for (size_t i = 0; i < SIZE; i++) {
        ck_assert_uint_eq(m->data[i], 7);
    }
    message_unref(m);
    sp_reader_finish(&r);
}
END_TEST

static int read_all(enum sp_transport transport, const void *stream, size_t size, struct err *e)
{
    struct sp_reader r;
    struct message *m = NULL;
    struct bytes in = bytes_of(stream, size);
    sp_reader_init(&r, transport, SP_REP, LIMIT);
    int rc = sp_read(&r, &in, &m, e);
    if (rc > 0) {
        message_unref(m);
    }
    sp_reader_finish(&r);
    return rc;
}

START_TEST(refused)
{
    static const struct {
        const char *stream;
        size_t size;
        int code;
    } cases[] = {
        {"HTTP/1.1 200 OK", 15, ERR_PROTOCOL},
        {"\0SP\0\0\x30\0\0", 8, ERR_PROTOCOL}, /* another REQ */
        {"\0SP\0\0\x31\0\0\x02\0\0\0\0\0\0\0\x05\x80\0\0\0", 21, ERR_PROTOCOL},
        {"\0SP\0\0\x31\0\0\x01\0\0\0\0\0\0\0\x03\x80\0\0\0", 21, ERR_PROTOCOL},
        {"\0SP\0\0\x31\0\0\x01\0\0\0\0\0\0\0\x05\x00\0\0\0", 21, ERR_PROTOCOL},
        {"\0SP\0\0\x31\0\0\x01\0\0\0\0\0\x01\x86\xa5\x80\0\0\0", 21, ERR_LIMIT},
        {"\0SP\0\0\x31\0\0\x01\xff\xff\xff\xff\xff\xff\xff\xff\x80\0\0\0", 21, ERR_LIMIT},
        {"\0SP\0\0\x31\0\0\x01\0\0\0\0\0\x01\x86\xa5", 17, ERR_LIMIT},   /* no id needed */
        {"\0SP\0\0\x31\0\0\x01\0\0\0\0\0\x01\x86\xa4\x80\0\0\0", 21, 0}, /* just fits */
    };
    struct err e = ERR_INIT;
    ck_assert_int_eq(read_all(SP_IPC, cases[_i].stream, cases[_i].size, &e), cases[_i].code);
}
END_TEST

/* ---- the other role, against NNG's REQ ------------------------------------------------------ */

static int listen_on(const char *path, int *ret_port)
{
    if (path != NULL) {
        struct sockaddr_un un = {.sun_family = AF_UNIX};
        (void)snprintf(un.sun_path, sizeof un.sun_path, "%s", path);
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        ck_assert_int_eq(bind(fd, (struct sockaddr *)&un, sizeof un), 0);
        ck_assert_int_eq(listen(fd, 1), 0);
        return fd;
    }
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof in;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&in, &size), 0);
    *ret_port = ntohs(in.sin_port);
    return fd;
}

static void write_all(int fd, const void *data, size_t size)
{
    const uint8_t *at = data;
    while (size > 0) {
        ssize_t n = send(fd, at, size, MSG_NOSIGNAL);
        ck_assert_int_gt(n, 0);
        at += n;
        size -= (size_t)n;
    }
}

/* Answers one request with the same bytes. */
static void echo_one(int fd, struct sp_reader *r, enum sp_transport transport)
{
    uint8_t buffer[4096];
    struct message *m = NULL;
    struct err e = ERR_INIT;
    int rc = 0;
    while (rc == 0) {
        ssize_t n = recv(fd, buffer, sizeof buffer, 0);
        ck_assert_int_gt(n, 0);
        struct bytes in = bytes_of(buffer, (size_t)n);
        rc = sp_read(r, &in, &m, &e);
        ck_assert_uint_eq(in.size, 0);
    }
    ck_assert_msg(rc == 1, "%s", e.text);
    uint8_t head[SP_HEAD_MAX];
    write_all(fd, head, sp_head(transport, m->id, m->size, head));
    write_all(fd, m->data, m->size);
    message_unref(m);
}

struct asker {
    char url[128];
    size_t size;
};

static void *ask(void *arg)
{
    const struct asker *a = arg;
    nng_socket s;
    void *answer = NULL;
    size_t size = 0;
    char *question = malloc(a->size + 1);
    memset(question, 'q', a->size + 1);
    const char *failed = NULL;
    if (nng_req0_open(&s) != 0 || nng_socket_set_size(s, NNG_OPT_RECVMAXSZ, 0) != 0 ||
        nng_dial(s, a->url, NULL, 0) != 0 || nng_send(s, question, a->size, 0) != 0 ||
        nng_recv(s, &answer, &size, NNG_FLAG_ALLOC) != 0) {
        failed = "no answer";
    } else if (size != a->size || (size > 0 && memcmp(answer, question, size) != 0)) {
        failed = "another answer";
    }
    if (answer != NULL) {
        nng_free(answer, size);
    }
    free(question);
    (void)nng_close(s);
    return (void *)(uintptr_t)failed;
}

START_TEST(serves_nng_req)
{
    static const size_t sizes[] = {0, 1, 70000};
    bool tcp = _i % 2 == 1;
    struct asker asker = {.size = sizes[_i / 2]};
    char dir[] = "/tmp/gpud-test.XXXXXX";
    char path[64];
    int port = 0;
    void *failed = NULL;
    pthread_t thread;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/s", dir);
    int listener = listen_on(tcp ? NULL : path, &port);
    if (tcp) {
        (void)snprintf(asker.url, sizeof asker.url, "tcp://127.0.0.1:%d", port);
    } else {
        (void)snprintf(asker.url, sizeof asker.url, "ipc://%s", path);
    }
    ck_assert_int_eq(pthread_create(&thread, NULL, ask, &asker), 0);
    int fd = accept(listener, NULL, NULL);
    ck_assert_int_ge(fd, 0);
    enum sp_transport transport = tcp ? SP_TCP : SP_IPC;
    uint8_t hello[SP_HELLO_BYTES];
    struct sp_reader r;
    sp_hello(SP_REP, hello);
    write_all(fd, hello, sizeof hello);
    sp_reader_init(&r, transport, SP_REQ, LIMIT);
    echo_one(fd, &r, transport);
    ck_assert_int_eq(pthread_join(thread, &failed), 0);
    ck_assert_msg(failed == NULL, "%s", (const char *)failed);
    sp_reader_finish(&r);
    (void)close(fd);
    (void)close(listener);
    (void)unlink(path);
    (void)rmdir(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sp");
    TCase *t = tcase_create("sp");
    tcase_add_test(t, bytes_on_the_wire);
    tcase_add_loop_test(t, any_pieces, 0, 80);
    tcase_add_test(t, received_in_place);
    tcase_add_test(t, memory_follows_what_has_come);
    tcase_add_loop_test(t, refused, 0, 9);
    tcase_add_loop_test(t, serves_nng_req, 0, 6);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
