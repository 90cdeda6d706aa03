/* Who finds no place is told so, and does not wait for one. */
#include "tests/unit/front/clients/listener_world.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/unit/common/suite.h"

#define TOLD_MAX 32u /* of one user at once, as many as are left then; more are closed */

static const uint8_t id[PROTO_CLIENT_ID_BYTES] = {1};
static const struct msg_hello hello = {.major = PROTO_MAJOR,
                                       .client_id = {.data = id, .size = sizeof id}};

/* A bare socket asks; the code, or 1 if it is closed before. */
static int answer(int fd)
{
    uint8_t out[512];
    uint8_t in[1024];
    struct msg_error msg;
    struct err e = ERR_INIT;
    size_t size = encode(&schema_msg_hello, &hello, out);
    bare_send(fd, out, size, 4 + size);
    if (recv(fd, in, 9, MSG_WAITALL) != 9) {
        return 1;
    }
    size = (size_t)in[7] << 8 | in[8];
    ck_assert_uint_le(size, sizeof in);
    ck_assert_int_eq(recv(fd, in, size, MSG_WAITALL), (ssize_t)size);
    ck_assert_int_eq(proto_decode(&schema_msg_error, bytes_of(in + 4, size - 4), &msg, &e), 0);
    ck_assert_uint_gt(msg.retry_after_ns, 0);
    proto_error_to(&msg, &e);
    ck_assert_msg(strstr(e.text, "connections_max") != NULL, "%s", e.text);
    return e.code;
}

/* Each that goes makes room for another one to be told. */
static void client_too_many(struct world *world)
{
    nng_socket a = dial(world->url);
    ck_assert_uint_ne(say_hello(a), 0);
    for (unsigned told = 0; told < 3 * TOLD_MAX;) {
        uint8_t theirs[8];
        int fd = bare(world, false);
        bare_greet(fd);
        int code = recv(fd, theirs, sizeof theirs, MSG_WAITALL) == 8 ? answer(fd) : 1;
        ck_assert(code == ERR_BUSY || code == 1);
        told += code == ERR_BUSY;
        (void)close(fd);
    }
    ck_assert_uint_eq(ask(a, 3), 3);
    nng_close(a);
}

START_TEST(one_too_many_is_told_so)
{
    struct listener_options options = usual;
    options.connections_max = 1;
    start(&options);
    serve(client_too_many);
    ck_assert_uint_ge(w.stats.refused, 3 * TOLD_MAX);
    ck_assert_uint_eq(w.stats.requests, 2);
    ck_assert_uint_eq(w.stats.protocol_errors, 0);
}
END_TEST

static void client_far_too_many(struct world *world)
{
    int fd[TOLD_MAX];
    nng_socket a = dial(world->url);
    ck_assert_uint_ne(say_hello(a), 0);
    for (unsigned i = 0; i < TOLD_MAX; i++) {
        fd[i] = bare(world, true);
        ck_assert_int_eq(answer(fd[i]), ERR_BUSY);
    }
    await_end(bare(world, false));
    ck_assert_int_eq(answer(fd[0]), ERR_BUSY); /* they are as they were */
    ck_assert_uint_eq(ask(a, 3), 3);
    for (unsigned i = 0; i < TOLD_MAX; i++) {
        (void)close(fd[i]);
    }
    nng_close(a);
}

static char tcp[SCRATCH_PATH + 32];

/* Who crowds takes no other user's place there: nobody in particular is one. */
static void client_takes_all(struct world *world)
{
    enum { LEFT = TOLD_MAX / 2 }; /* for who comes second */
    uint8_t out[512];
    int fd[TOLD_MAX];
    nng_socket far[LEFT];
    size_t size = encode(&schema_msg_hello, &hello, out);
    nng_socket a = dial(world->url);
    ck_assert_uint_ne(say_hello(a), 0);
    for (unsigned i = 0; i < TOLD_MAX; i++) {
        fd[i] = bare(world, true);
        ck_assert_int_eq(answer(fd[i]), ERR_BUSY);
    }
    for (unsigned i = 0; i < LEFT; i++) {
        await_end(bare(world, false));
        far[i] = dial(tcp);
        answered_by_error(far[i], out, size, ERR_BUSY);
    }
    for (unsigned i = 0; i < TOLD_MAX; i++) {
        (void)close(fd[i]);
    }
    for (unsigned i = 0; i < LEFT; i++) {
        nng_close(far[i]);
    }
    nng_close(a);
}

START_TEST(no_user_is_told_in_all_places)
{
    struct err e = ERR_INIT;
    struct listener_options options = usual;
    options.connections_max = 1;
    options.connections_reserved = 0;
    start(&options);
    (void)snprintf(tcp, sizeof tcp, "tcp://localhost:%u", free_port());
    ck_assert_msg(listener_add(w.listener, tcp, &e) == 0, "%s", e.text);
    serve(client_takes_all);
}
END_TEST

START_TEST(connections_over_the_cap_are_closed)
{
    struct listener_options options = usual;
    options.connections_max = 1;
    start(&options);
    serve(client_far_too_many);
    ck_assert_uint_eq(w.stats.refused, TOLD_MAX + 1);
}
END_TEST

static void client_stays(struct world *world)
{
    nng_socket a = dial(world->url);
    ck_assert_uint_ne(say_hello(a), 0);
    int fd = bare(world, true);
    ck_assert_int_eq(answer(fd), ERR_BUSY);
    await_end(fd);
    ck_assert_uint_eq(ask(a, 3), 3);
    nng_close(a);
}

START_TEST(who_was_told_and_stays_is_closed)
{
    struct listener_options options = usual;
    options.connections_max = 1;
    options.handshake_ns = 3 * NS_PER_S; /* less would race with the hello */
    start(&options);
    serve(client_stays);
    ck_assert_uint_eq(w.stats.silent, 1);
}
END_TEST

static void client_keeper(struct world *world)
{
    uint8_t out[512];
    size_t size = encode(&schema_msg_hello, &hello, out);
    nng_socket a = dial(tcp);
    ck_assert_uint_ne(say_hello(a), 0);
    nng_socket b = dial(tcp);
    answered_by_error(b, out, size, ERR_BUSY);
    nng_socket keeper = dial(world->url);
    ck_assert_uint_ne(say_hello(keeper), 0);
    answered_by_error(b, out, size, ERR_BUSY);
    nng_close(a);
    nng_close(b);
    nng_close(keeper);
}

/* The daemon's own user has places that others have not, and those who are told take none. */
START_TEST(keepers_find_a_place)
{
    struct err e = ERR_INIT;
    struct listener_options options = usual;
    options.connections_max = 1;
    options.connections_reserved = 1;
    start(&options);
    (void)snprintf(tcp, sizeof tcp, "tcp://localhost:%u", free_port());
    ck_assert_msg(listener_add(w.listener, tcp, &e) == 0, "%s", e.text);
    serve(client_keeper);
    ck_assert_uint_eq(w.stats.refused, 1);
    ck_assert_uint_eq(w.stats.requests, 2);
}
END_TEST

SUITE_MAIN("listener_full", one_too_many_is_told_so, connections_over_the_cap_are_closed,
           no_user_is_told_in_all_places, who_was_told_and_stays_is_closed, keepers_find_a_place)
