/* The listener and clients that behave as no library does; each ends alone. */
#include "tests/unit/front/clients/listener_world.h"

#include <check.h>
#include <errno.h>
#include <linux/sockios.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/unit/common/suite.h"

#if !defined(SO_PASSRIGHTS) && (defined(__x86_64__) || defined(__aarch64__))
#define SO_PASSRIGHTS 83
#endif

#define LEAVERS 200

static char tcp[SCRATCH_PATH + 32];

/* ---- peers that leave ------------------------------------------------------------------------ */

static void client_leavers(struct world *world)
{
    for (int i = 0; i < LEAVERS; i++) {
        (void)close(bare(world, false));
    }
    client_asks(world);
}

/* FAULT 41: peers that disconnect before the greeting
 * required: no effect
 * defence: `front/clients/door.c`: accept_next */
START_TEST(listener_outlives_peers_that_leave)
{
    start(&usual);
    serve(client_leavers);
    ck_assert_uint_eq(w.stats.requests, 50);
}
END_TEST

/* ---- connections that never are quiet -------------------------------------------------------- */

/* PINGs without a pause, until the connection ends. */
static void *flood(void *data)
{
    /* on ipc: a type, a length, a request id, then [3] */
    static const uint8_t frame[] = {1, 0, 0, 0, 0, 0, 0, 0, 6, 0x80, 0, 0, 1, 0x91, 3};
    int fd = *(int *)data;
    while (send(fd, frame, sizeof frame, MSG_NOSIGNAL) > 0) {
    }
    await_end(fd);
    return NULL;
}

static void client_holds_and_floods(struct world *world)
{
    int fd = bare(world, true);
    for (unsigned i = 0; i < 3; i++) {
        bare_ping(fd, DO_HOLD);
    }
    (void)flood(&fd);
    client_asks(world);
}

START_TEST(one_that_goes_on_sending_is_closed_all_the_same)
{
    struct listener_options options = usual;
    options.requests_max = 8;
    options.pipe_requests_max = 3;
    options.user_requests_max = 9;
    start(&options);
    serve(client_holds_and_floods);
    ck_assert_uint_eq(w.stats.crowded, 1);
    ck_assert_uint_eq(w.stats.requests, 53);
}
END_TEST

static pthread_t flooder;
static int flooding;

static void client_floods_to_the_end(struct world *world)
{
    flooding = bare(world, true);
    ck_assert_int_eq(pthread_create(&flooder, NULL, flood, &flooding), 0);
    client_asks(world);
}

START_TEST(the_listener_closes_though_one_goes_on_sending)
{
    start(&usual);
    serve(client_floods_to_the_end);
    ck_assert_int_eq(pthread_join(flooder, NULL), 0);
}
END_TEST

/* ---- parts of a message ---------------------------------------------------------------------- */

/* A bare socket whose HELLO was answered. */
static int greeted(const struct world *world)
{
    static const uint8_t id[PROTO_CLIENT_ID_BYTES] = {1};
    static const struct msg_hello hello = {.major = PROTO_MAJOR,
                                           .client_id = {.data = id, .size = sizeof id}};
    uint8_t out[512];
    uint8_t in[64];
    size_t size = encode(&schema_msg_hello, &hello, out);
    int fd = bare(world, true);
    bare_send(fd, out, size, 4 + size);
    ck_assert_int_gt(recv(fd, in, sizeof in, 0), 13);
    return fd;
}

/* After its HELLO it sends so many bytes of a PING, and no more. */
static void client_half(struct world *world)
{
    static const uint8_t part[] = {1, 0, 0, 0, 0, 0, 0, 1, 0, 0x80, 0, 0, 1, 0x91};
    static const size_t sizes[] = {1, 9, 12, 13, 14};
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int fd = greeted(world);
        ck_assert_int_eq(send(fd, part, sizes[i], MSG_NOSIGNAL), (ssize_t)sizes[i]);
        await_end(fd);
    }
    nng_socket s = dial(world->url); /* between two messages it may be silent */
    (void)say_hello(s);
    int fd = greeted(world);
    ck_assert_int_eq(send(fd, part, 1, MSG_NOSIGNAL), 1);
    await_end(fd);
    ck_assert_uint_eq(ask(s, 1), 1);
    nng_close(s);
}

START_TEST(half_a_message_ends_its_connection)
{
    struct listener_options options = usual;
    options.stall_ns = 50 * NS_PER_MS;
    start(&options);
    serve(client_half);
    ck_assert_uint_eq(w.stats.stalled, 6);
    ck_assert_uint_eq(w.stats.protocol_errors, 0);
}
END_TEST

#define PARTS 200u

/* Each part is read before the next one is sent. */
static void client_sends_parts(struct world *world)
{
    uint8_t out[13] = {1, 0, 0, 0, 0, 0, 0, PARTS >> 8, PARTS & 0xff};
    int fd = greeted(world);
    out[9] = 0x80;
    ck_assert_int_eq(send(fd, out, sizeof out, MSG_NOSIGNAL), sizeof out);
    for (unsigned i = 0; i < PARTS - 4; i++) {
        int unread = 1;
        ck_assert_int_eq(send(fd, "", 1, MSG_NOSIGNAL), 1);
        while (unread > 0) {
            ck_assert_int_eq(ioctl(fd, SIOCOUTQ, &unread), 0);
        }
    }
    await_end(fd);
}

/* The timer for the connection's deadline runs from the first part on. */
START_TEST(parts_of_a_message_do_not_wake_the_loop)
{
    start(&usual);
    serve(client_sends_parts);
    ck_assert_uint_lt(w.turns, PARTS / 4);
    ck_assert_uint_eq(w.stats.protocol_errors, 1);
}
END_TEST

/* ---- answers that are not read --------------------------------------------------------------- */

/* Its socket's buffer takes some; what goes beyond the limit ends it. */
static void client_reads_nothing(struct world *world)
{
    int fd = bare(world, true);
    nng_socket s = dial(world->url);
    (void)say_hello(s);
    for (unsigned i = 0; i < 64 && ask(s, DO_COUNT_UNREAD) == 0; i++) {
        bare_ping(fd, DO_LONG);
    }
    while (ask(s, DO_COUNT_UNREAD) == 0) {
    }
    await_end(fd);
    ck_assert_uint_eq(ask(s, 1), 1);
    nng_close(s);
}

START_TEST(unread_answers_end_their_connection)
{
    struct listener_options options = usual;
    options.unread_max = 1 << 20;
    start(&options);
    serve(client_reads_nothing);
    ck_assert_uint_eq(w.stats.unread, 1);
    ck_assert_uint_eq(w.stats.crowded, 0);
}
END_TEST

/* ---- administrators -------------------------------------------------------------------------- */

#define CROWD 40

/* All its places are taken by idle ones of the daemon's own user. */
static void client_idle_keepers(struct world *world)
{
    int fd[CROWD];
    nng_socket later[3];
    nng_socket worker = dial(world->url);
    post_ping(worker, DO_HOLD); /* the oldest, but it has work */
    nng_socket first = dial(world->url);
    while (ask(first, DO_COUNT_HELD) == 0) {
    }
    for (unsigned i = 0; i < CROWD; i++) {
        fd[i] = bare(world, true);
    }
    for (unsigned i = 0; i < 3; i++) {
        later[i] = dial(world->url);
        ck_assert_uint_eq(ask(later[i], DO_COUNT_HELD), 1);
    }
    await_end(fd[0]);
    ck_assert_uint_eq(ask(later[0], DO_RELEASE), DO_RELEASE);
    ck_assert_uint_eq(take_pong(worker), DO_HOLD);
    for (unsigned i = 0; i < 3; i++) {
        nng_close(later[i]);
    }
    nng_close(first);
    nng_close(worker);
    for (unsigned i = 1; i < CROWD; i++) {
        (void)close(fd[i]);
    }
}

START_TEST(idle_administrators_make_room_for_the_next)
{
    struct listener_options options = usual;
    options.connections_max = 4;
    options.connections_reserved = 4;
    start(&options);
    serve(client_idle_keepers);
    ck_assert_uint_ge(w.stats.displaced, CROWD - 7);
    ck_assert_uint_eq(w.stats.refused, 0);
}
END_TEST

/* ---- descriptors ----------------------------------------------------------------------------- */

/* A process that received a descriptor would have to close it. */
static void client_passes_a_descriptor(struct world *world)
{
    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    const int given = STDERR_FILENO;
    struct iovec iov = {.iov_base = "x", .iov_len = 1};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof given);
    memcpy(CMSG_DATA(head), &given, sizeof given);
    int fd = bare(world, false);
    bool known = false;
#ifdef SO_PASSRIGHTS
    const int off = 0;
    known = setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof off) == 0;
#endif
    ck_assert_int_eq(sendmsg(fd, &message, MSG_NOSIGNAL), known ? -1 : 1);
    ck_assert(!known || errno == EPERM);
    (void)close(fd);
}

START_TEST(descriptors_are_refused_by_the_kernel)
{
    start(&usual);
    serve(client_passes_a_descriptor);
}
END_TEST

/* ---- long messages --------------------------------------------------------------------------- */

/* A message of many receives, over both transports, and an answer of many sends. */
static void client_long(struct world *world)
{
    const char *const urls[] = {world->url, tcp};
    for (unsigned i = 0; i < 2; i++) {
        static uint8_t out[400000];
        char *data = NULL;
        size_t size = 0;
        nng_socket s = dial(urls[i]);
        memset(out, 0xc0, sizeof out); /* nil, and so many fields more than are known */
        out[0] = 0xdd;
        out[1] = 0;
        out[2] = (sizeof out - 5) >> 16;
        out[3] = (sizeof out - 5) >> 8 & 0xff;
        out[4] = (sizeof out - 5) & 0xff;
        out[5] = MSG_KIND_PING;
        post(s, out, sizeof out);
        ck_assert_uint_eq(take_pong(s), 0);
        post_ping(s, DO_LONG);
        ck_assert_int_eq(nng_recv(s, &data, &size, NNG_FLAG_ALLOC), 0);
        ck_assert_uint_eq(size, LONG_BYTES);
        for (size_t k = 0; k < size; k++) {
            ck_assert_uint_eq((uint8_t)data[k], k % 251);
        }
        nng_free(data, size);
        nng_close(s);
    }
}

START_TEST(long_messages_come_and_go)
{
    struct err e = ERR_INIT;
    start(&usual);
    (void)snprintf(tcp, sizeof tcp, "tcp://127.0.0.1:%u", free_port());
    ck_assert_msg(listener_add(w.listener, tcp, &e) == 0, "%s", e.text);
    serve(client_long);
    ck_assert_uint_eq(w.stats.protocol_errors, 0);
}
END_TEST

SUITE_MAIN("listener_hostile", descriptors_are_refused_by_the_kernel,
           listener_outlives_peers_that_leave, one_that_goes_on_sending_is_closed_all_the_same,
           the_listener_closes_though_one_goes_on_sending, half_a_message_ends_its_connection,
           parts_of_a_message_do_not_wake_the_loop, unread_answers_end_their_connection,
           idle_administrators_make_room_for_the_next, long_messages_come_and_go)
