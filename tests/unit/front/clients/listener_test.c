/* The listener with real clients. */
#include "tests/unit/front/clients/listener_world.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"

/* ---- tests ---------------------------------------------------------------------------------- */

START_TEST(answers_and_knows_who_asks)
{
    start(&usual);
    serve(client_asks);
    ck_assert(w.last_peer.local);
    ck_assert_uint_eq(w.last_peer.uid, getuid());
    ck_assert_uint_eq(w.last_peer.gid, getgid());
    ck_assert_int_eq(w.last_peer.pid, getpid());
    ck_assert_uint_eq(w.stats.requests, 50);
    ck_assert_uint_eq(w.stats.protocol_errors, 0);
    ck_assert_uint_eq(w.ends, 0); /* it never said hello */
}
END_TEST

START_TEST(serves_tcp_on_loopback)
{
    struct err e = ERR_INIT;
    start(&usual);
    (void)snprintf(w.url, sizeof w.url, "tcp://localhost:%u", free_port());
    ck_assert_msg(listener_add(w.listener, w.url, &e) == 0, "%s", e.text);
    serve(client_asks);
    ck_assert(!w.last_peer.local);
    ck_assert_uint_eq(w.stats.requests, 50);
}
END_TEST

static void client_64_contexts(struct world *world)
{
    enum { COUNT = 64 };
    nng_socket s = dial(world->url);
    nng_ctx ctx[COUNT];
    nng_aio *aio[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        uint8_t out[512];
        struct msg_ping ping = {.value = DO_HOLD + i};
        size_t size = encode(&schema_msg_ping, &ping, out);
        nng_msg *msg = NULL;
        ck_assert_int_eq(nng_ctx_open(&ctx[i], s), 0);
        ck_assert_int_eq(nng_aio_alloc(&aio[i], NULL, NULL), 0);
        ck_assert_int_eq(nng_msg_alloc(&msg, 0), 0);
        ck_assert_int_eq(nng_msg_append(msg, out, size), 0);
        nng_aio_set_msg(aio[i], msg);
        nng_ctx_send(ctx[i], aio[i]);
        nng_aio_wait(aio[i]);
        ck_assert_int_eq(nng_aio_result(aio[i]), 0);
        nng_ctx_recv(ctx[i], aio[i]);
    }
    while (ask(s, DO_COUNT_HELD) < COUNT) {
    }
    ck_assert_uint_eq(ask(s, DO_RELEASE), DO_RELEASE);
    for (unsigned i = 0; i < COUNT; i++) {
        nng_aio_wait(aio[i]);
        ck_assert_int_eq(nng_aio_result(aio[i]), 0);
        nng_msg *msg = nng_aio_get_msg(aio[i]);
        ck_assert_uint_eq(pong_of(nng_msg_body(msg), nng_msg_len(msg)), DO_HOLD + i);
        nng_msg_free(msg);
        nng_aio_free(aio[i]);
    }
    nng_close(s);
}

START_TEST(sixty_four_requests_answered_in_reverse)
{
    struct listener_options options = usual;
    options.pipe_requests_max = 128;
    start(&options);
    serve(client_64_contexts);
    ck_assert_uint_eq(w.stats.crowded, 0);
}
END_TEST

static void client_bad_field(struct world *world)
{
    static const uint8_t bad[] = {0x92, MSG_KIND_PING, 0xa1, 'x'}; /* seq is text */
    static const uint8_t newer[] = {0x93, 0x3f, 0x91, 0xc0, 0xa1, 'x'};
    nng_socket s = dial(world->url);
    answered_by_error(s, bad, sizeof bad, ERR_PROTOCOL);
    answered_by_error(s, newer, sizeof newer, ERR_UNSUPPORTED);
    ck_assert_uint_eq(ask(s, 1), 1);
    nng_close(s);
}

START_TEST(a_request_with_a_bad_field_is_answered)
{
    start(&usual);
    serve(client_bad_field);
    ck_assert_uint_eq(w.stats.protocol_errors, 2);
    ck_assert_uint_eq(w.stats.requests, 1);
}
END_TEST

static void client_garbage(struct world *world)
{
    static const uint8_t no_array[] = {0xc1, 0xff, 0x00};
    static const uint8_t unknown[] = {0x92, 0x3f}; /* and ends early */
    static const uint8_t reply[] = {0x91, MSG_KIND_PONG};
    static const struct {
        const uint8_t *data;
        size_t size;
    } cases[] = {
        {no_array, sizeof no_array}, {unknown, sizeof unknown}, {reply, sizeof reply}, {NULL, 0}};
    for (unsigned i = 0; i < 4; i++) {
        int fd = bare(world, true);
        bare_send(fd, i < 3 ? cases[i].data : no_array, cases[i].size, 4 + cases[i].size);
        await_end(fd);
    }
    client_asks(world);
}

START_TEST(what_is_no_request_ends_its_connection)
{
    start(&usual);
    serve(client_garbage);
    ck_assert_uint_eq(w.stats.protocol_errors, 4);
    ck_assert_uint_eq(w.stats.requests, 50);
}
END_TEST

static void client_not_sp(struct world *world)
{
    int fd = bare(world, false);
    ck_assert_int_eq(send(fd, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 18);
    await_end(fd);
    fd = bare(world, true);
    bare_send(fd, "x", 1, UINT64_C(1) << 40); /* claims a TiB */
    await_end(fd);
    fd = bare(world, true);
    bare_send(fd, "x", 1, PROTO_MESSAGE_MAX + 5);
    await_end(fd);
    fd = bare(world, true);
    bare_send(fd, "x", 1, 2); /* too short for a request's id */
    await_end(fd);
    client_asks(world);
}

START_TEST(what_is_not_sp_or_too_long_ends_its_connection)
{
    start(&usual);
    serve(client_not_sp);
    ck_assert_uint_eq(w.stats.requests, 50);
}
END_TEST

static void client_silent(struct world *world)
{
    nng_socket s = dial(world->url);
    (void)say_hello(s);
    for (unsigned i = 0; i < 8; i++) { /* some go before their time is over */
        (void)close(bare(world, true));
    }
    int first = bare(world, true);
    int second = bare(world, true);
    await_end(first);
    await_end(second);
    ck_assert_uint_eq(ask(s, 1), 1); /* it was there before them */
    nng_close(s);
}

START_TEST(silent_connections_are_closed)
{
    struct listener_options options = usual;
    options.handshake_ns = 3 * NS_PER_S; /* less would race with the hello */
    start(&options);
    serve(client_silent);
    ck_assert_uint_ge(w.stats.silent, 2);
}
END_TEST

static void client_leaves(struct world *world)
{
    nng_socket a = dial(world->url);
    nng_socket b = dial(world->url);
    ck_assert_uint_ne(say_hello(a), 0);
    post_ping(a, DO_HOLD);
    while (ask(b, DO_COUNT_HELD) == 0) {
    }
    nng_close(a);
    ck_assert_uint_eq(ask(b, DO_AWAIT_END), DO_AWAIT_END);
    for (uint64_t i = 0; i < 8; i++) { /* its slot serves again */
        ck_assert_uint_eq(ask(b, i), i);
    }
    nng_close(b);
}

START_TEST(an_answer_to_nobody_frees_its_slot)
{
    struct listener_options options = usual;
    options.requests_max = 2;
    options.pipe_requests_max = 2;
    start(&options);
    serve(client_leaves);
    ck_assert_uint_eq(w.ends, 1);
    ck_assert_uint_eq(w.held_count, 0);
}
END_TEST

static void client_dropped(struct world *world)
{
    for (unsigned i = 0; i < 3; i++) {
        nng_socket a = dial(world->url);
        post_ping(a, DO_DROP);
        nng_socket b = dial(world->url);
        ck_assert_uint_eq(ask(b, 5), 5);
        nng_close(a);
        nng_close(b);
    }
}

START_TEST(a_dropped_slot_serves_again)
{
    struct listener_options options = usual;
    options.requests_max = 1;
    start(&options);
    serve(client_dropped);
}
END_TEST

static void client_told_to_go(struct world *world)
{
    int fd = bare(world, true);
    bare_ping(fd, DO_CLOSE);
    await_end(fd);
}

START_TEST(a_connection_can_be_closed)
{
    start(&usual);
    serve(client_told_to_go);
    ck_assert_uint_eq(w.stats.requests, 1);
}
END_TEST

static void client_crowds(struct world *world)
{
    int fd = bare(world, true);
    for (unsigned i = 0; i < 4; i++) {
        bare_ping(fd, DO_HOLD);
    }
    await_end(fd);
    client_asks(world);
}

START_TEST(one_connection_cannot_take_all_slots)
{
    struct listener_options options = usual;
    options.requests_max = 8;
    options.pipe_requests_max = 3;
    start(&options);
    serve(client_crowds);
    ck_assert_uint_eq(w.stats.crowded, 1);
    ck_assert_uint_eq(w.stats.requests, 53);
}
END_TEST

#define MANY 200u /* more than the first slots */

static void client_holds_many(struct world *world)
{
    int fd = bare(world, true);
    for (unsigned i = 0; i < MANY; i++) {
        bare_ping(fd, DO_HOLD);
    }
    nng_socket s = dial(world->url);
    while (ask(s, DO_COUNT_HELD) < MANY) {
    }
    ck_assert_uint_eq(ask(s, DO_RELEASE), DO_RELEASE);
    nng_close(s);
    (void)close(fd);
}

START_TEST(slots_are_made_as_they_are_needed)
{
    struct listener_options options = usual;
    options.requests_max = 300;
    options.pipe_requests_max = MANY;
    start(&options);
    serve(client_holds_many);
    ck_assert_uint_eq(w.stats.crowded, 0);
    ck_assert_uint_ge(w.stats.requests, MANY + 2);
}
END_TEST

static void client_leaves_requests(struct world *world)
{
    nng_socket a = dial(world->url);
    (void)say_hello(a);
    post_ping(a, DO_HOLD);
    nng_socket b = dial(world->url);
    while (ask(b, DO_COUNT_HELD) == 0) {
    }
    nng_close(b);
    /* `a` stays open until the listener is closed */
}

START_TEST(closes_with_requests_unanswered)
{
    start(&usual);
    serve(client_leaves_requests);
    nng_fini();
}
END_TEST

static uint64_t bare_ask(int fd, const struct schema *schema, const void *msg)
{
    uint8_t out[512];
    uint8_t in[512];
    size_t size = encode(schema, msg, out);
    bare_send(fd, out, size, 4 + size);
    ck_assert_int_eq(recv(fd, in, 9, MSG_WAITALL), 9);
    ck_assert_uint_eq(in[0], 1);
    size = in[8];
    ck_assert_uint_gt(size, 4);
    ck_assert_int_eq(recv(fd, in, size, MSG_WAITALL), (ssize_t)size);
    return pong_of(in + 4, size - 4);
}

static void client_crowds_by_several(struct world *world)
{
    uint8_t id[PROTO_CLIENT_ID_BYTES] = {1};
    struct msg_hello hello = {.major = PROTO_MAJOR, .client_id = bytes_of(id, sizeof id)};
    struct msg_ping count = {.value = DO_COUNT_HELD};
    nng_socket a = dial(world->url);
    int b = bare(world, true);
    ck_assert_uint_ne(bare_ask(b, &schema_msg_hello, &hello), 0);
    post_ping(a, DO_HOLD);
    while (bare_ask(b, &schema_msg_ping, &count) == 0) {
    }
    for (unsigned i = 0; i < 6; i++) {
        bare_ping(b, DO_HOLD);
    }
    await_end(b); /* of the one that went on, not of the other */
    ck_assert_uint_eq(take_pong(a), DO_HOLD);
    nng_close(a);
    for (bool served = false; !served;) { /* what was held is answered: soon there is room again */
        int c = bare(world, true);
        bare_ping(c, DO_COUNT_HELD);
        served = recv(c, id, 1, 0) == 1;
        (void)close(c);
    }
}

START_TEST(one_user_cannot_take_all_slots)
{
    struct listener_options options = usual;
    options.requests_max = 16;
    options.pipe_requests_max = 8;
    options.user_requests_max = 5;
    start(&options);
    serve(client_crowds_by_several);
    ck_assert_uint_ge(w.stats.crowded, 1);
}
END_TEST

/* Bare sockets: closing many sockets of NNG's at once may hang inside NNG 1.5.2. */
static void *come_and_go(void *data)
{
    const struct world *world = data;
    uint8_t id[PROTO_CLIENT_ID_BYTES] = {1};
    struct msg_hello hello = {.major = PROTO_MAJOR, .client_id = bytes_of(id, sizeof id)};
    for (unsigned round = 0; round < 20; round++) {
        int fd = bare(world, true);
        ck_assert_uint_ne(bare_ask(fd, &schema_msg_hello, &hello), 0);
        for (uint64_t i = 0; i < 10; i++) {
            struct msg_ping ping = {.value = i};
            ck_assert_uint_eq(bare_ask(fd, &schema_msg_ping, &ping), i);
        }
        bare_ping(fd, DO_DROP); /* it goes with a request unanswered */
        (void)close(fd);
    }
    return NULL;
}

static void client_crowd(struct world *world)
{
    pthread_t thread[4];
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_create(&thread[i], NULL, come_and_go, world), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    }
    client_asks(world);
}

START_TEST(clients_come_and_go_at_once)
{
    struct listener_options options = usual;
    options.requests_max = 4;
    options.pipe_requests_max = 4;
    options.user_requests_max = 4;
    start(&options);
    serve(client_crowd);
    ck_assert_uint_ge(w.stats.requests, 4 * 20 * 11 + 50);
    ck_assert_uint_le(w.stats.requests, 4 * 20 * 12 + 50);
    ck_assert_uint_le(w.ends, 4 * 20);
    ck_assert_uint_eq(w.stats.protocol_errors, 0);
}
END_TEST

struct url {
    const char *url;
    int code;
};

static const struct url urls[] = {
    {"http://127.0.0.1:1", ERR_INVALID},
    {"ipc://relative", ERR_INVALID},
    {"ipc://", ERR_INVALID},
    {"tcp://127.0.0.1", ERR_INVALID},
    {"tcp://127.0.0.1:", ERR_INVALID},
    {"tcp://127.0.0.1:0", ERR_INVALID},
    {"tcp://127.0.0.1:65536", ERR_INVALID},
    {"tcp://127.0.0.1:80x", ERR_INVALID},
    {"tcp://0.0.0.0:7000", ERR_PERMISSION},
    {"tcp://*:7000", ERR_PERMISSION},
    {"tcp://:7000", ERR_PERMISSION},
    {"tcp://[::]:7000", ERR_PERMISSION},
    {"tcp://192.168.0.1:7000", ERR_PERMISSION},
    {"tcp://127.0.0.1@1.2.3.4:7000", ERR_PERMISSION},
    {"tcp://[::ffff:1.2.3.4]:1", ERR_PERMISSION},
    {"tcp://example.org:7000", ERR_PERMISSION},
    {"tls+tcp://example.org:7000", ERR_INVALID},
    {"tls+tcp://0.0.0.0", ERR_INVALID},
    {"tls+tcp://127.0.0.1@1.2.3.4:7000", ERR_INVALID},
    {"tls+tcp://0.0.0.0:7000", ERR_STATE}, /* without a certificate */
    {"tls+tcp://[::]:7000", ERR_STATE},
};

static void client_nothing(struct world *world)
{
    (void)world;
}

START_TEST(addresses_that_are_refused)
{
    struct err e = ERR_INIT;
    char path[256];
    start(&usual);
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        int rc = listener_add(w.listener, urls[i].url, &e);
        ck_assert_msg(rc == urls[i].code, "%s: %s", urls[i].url, err_name(rc));
    }
    (void)snprintf(path, sizeof path, "ipc:///%0120d", 0);
    ck_assert_int_eq(listener_add(w.listener, path, &e), ERR_INVALID);
    serve(client_nothing);
}
END_TEST

static int plain_listen(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    return fd;
}

START_TEST(a_stale_socket_is_taken_over_and_a_live_one_is_not)
{
    struct err e = ERR_INIT;
    struct stat st;
    char url[256];
    start(&usual);
    ck_assert_int_eq(stat(scratch_path(w.dir, "s"), &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0660);
    const char *path = scratch_path(w.dir, "other");
    (void)snprintf(url, sizeof url, "ipc://%s", path);
    int live = plain_listen(path);
    ck_assert_int_eq(listener_add(w.listener, url, &e), ERR_EXISTS);
    ck_assert_ptr_nonnull(strstr(e.text, "another gpud serves"));
    ck_assert_ptr_nonnull(strstr(e.text, "--listen"));
    (void)close(live);
    ck_assert_msg(listener_add(w.listener, url, &e) == 0, "%s", e.text);
    ck_assert_int_eq(listener_add(w.listener, url, &e), ERR_EXISTS);
    path = scratch_path(w.dir, "file");
    scratch_write(path, "x", 1);
    (void)snprintf(url, sizeof url, "ipc://%s", path);
    ck_assert_int_eq(listener_add(w.listener, url, &e), ERR_EXISTS);
    ck_assert_int_eq(stat(path, &st), 0);
    (void)snprintf(url, sizeof url, "ipc://%s/absent/s", w.dir);
    ck_assert_int_lt(listener_add(w.listener, url, &e), 0);
    serve(client_asks);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("listener");
    TCase *tc = tcase_create("listener");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, answers_and_knows_who_asks);
    tcase_add_test(tc, serves_tcp_on_loopback);
    tcase_add_test(tc, sixty_four_requests_answered_in_reverse);
    tcase_add_test(tc, a_request_with_a_bad_field_is_answered);
    tcase_add_test(tc, what_is_no_request_ends_its_connection);
    tcase_add_test(tc, what_is_not_sp_or_too_long_ends_its_connection);
    tcase_add_test(tc, silent_connections_are_closed);
    tcase_add_test(tc, an_answer_to_nobody_frees_its_slot);
    tcase_add_test(tc, a_dropped_slot_serves_again);
    tcase_add_test(tc, a_connection_can_be_closed);
    tcase_add_test(tc, one_connection_cannot_take_all_slots);
    tcase_add_test(tc, slots_are_made_as_they_are_needed);
    tcase_add_test(tc, one_user_cannot_take_all_slots);
    tcase_add_test(tc, closes_with_requests_unanswered);
    tcase_add_test(tc, addresses_that_are_refused);
    tcase_add_test(tc, a_stale_socket_is_taken_over_and_a_live_one_is_not);
    suite_add_tcase(suite, tc);
    tc = tcase_create("crowd");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, clients_come_and_go_at_once);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
