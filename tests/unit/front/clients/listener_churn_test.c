/*
 * Connections of ten kinds come and go: none leaves a descriptor behind, and memory does not grow
 * once the first tenth has gone. GPUD_CHURN says how many (3,000); scripts/nightly.sh takes
 * 200,000.
 */
#include "tests/unit/front/clients/listener_world.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "proto/sp.h"

#define THREADS 4u
#define MEMORY  (8u * 1024 * 1024) /* bytes that it may grow by: what malloc keeps of a peak */

enum kind {
    GREETING_ONLY,
    HELLO_ONLY,
    UNREAD,      /* requests whose answers nobody reads */
    HALF_HEADER, /* of a message */
    HALF_BODY,
    KILLED, /* with a request that is worked on */
    SLOW,   /* a byte at a time */
    RESENT,
    TWICE, /* two at once with one id */
    GARBAGE,
    KINDS
};

static unsigned total;
static unsigned port;
static atomic_uint next;

struct client {
    int fd;
    bool tcp;
};

static struct client client_connect(const struct world *world, bool tcp)
{
    struct client c = {.tcp = tcp};
    if (!tcp) {
        c.fd = bare(world, false);
        return c;
    }
    const struct linger at_once = {.l_onoff = 1}; /* keeps no port busy */
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    c.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(c.fd, 0);
    ck_assert_int_eq(setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    ck_assert_int_eq(connect(c.fd, (const struct sockaddr *)&a, sizeof a), 0);
    return c;
}

static void put(const struct client *c, const void *data, size_t size)
{
    ck_assert_int_eq(send(c->fd, data, size, MSG_NOSIGNAL), (ssize_t)size);
}

/* A frame in `out`; returns its size. */
static size_t frame(const struct client *c, const struct schema *schema, const void *msg,
                    uint8_t out[600])
{
    uint8_t message[512];
    size_t size = encode(schema, msg, message);
    size_t head = sp_head(c->tcp ? SP_TCP : SP_IPC, 0x80000001u, size, out);
    memcpy(out + head, message, size);
    return head + size;
}

static void take(const struct client *c, void *data, size_t size)
{
    ck_assert_int_eq(recv(c->fd, data, size, MSG_WAITALL), (ssize_t)size);
}

static uint64_t take_answer(const struct client *c)
{
    uint8_t in[600];
    size_t head = c->tcp ? 8 : 9;
    take(c, in, head);
    size_t size = in[head - 1] + 256u * in[head - 2];
    ck_assert_uint_ge(size, 4);
    ck_assert_uint_le(size, sizeof in);
    take(c, in, size);
    ck_assert_uint_eq(in[3], 1); /* of the id */
    return pong_of(in + 4, size - 4);
}

static void greet(const struct client *c)
{
    uint8_t ours[SP_HELLO_BYTES];
    uint8_t theirs[SP_HELLO_BYTES];
    sp_hello(SP_REQ, ours);
    put(c, ours, sizeof ours);
    take(c, theirs, sizeof theirs);
    sp_hello(SP_REP, ours);
    ck_assert_mem_eq(ours, theirs, sizeof ours);
}

static void hello(const struct client *c)
{
    uint8_t out[600];
    uint8_t id[PROTO_CLIENT_ID_BYTES] = {1};
    struct msg_hello msg = {.major = PROTO_MAJOR, .client_id = bytes_of(id, sizeof id)};
    greet(c);
    put(c, out, frame(c, &schema_msg_hello, &msg, out));
    ck_assert_uint_ne(take_answer(c), 0);
}

/* So many PINGs in one piece. */
static void ping(const struct client *c, uint64_t value, unsigned times)
{
    uint8_t out[8 * 600];
    size_t size = 0;
    struct msg_ping msg = {.value = value};
    for (unsigned i = 0; i < times; i++) {
        size += frame(c, &schema_msg_ping, &msg, out + size);
    }
    put(c, out, size);
}

static void slow(const struct client *c)
{
    uint8_t out[600];
    struct msg_ping msg = {.value = 7};
    size_t size = frame(c, &schema_msg_ping, &msg, out);
    for (size_t i = 0; i < size; i++) {
        put(c, out + i, 1);
    }
    ck_assert_uint_eq(take_answer(c), 7);
}

static void part(const struct client *c, bool header)
{
    uint8_t out[600];
    struct msg_ping msg = {.value = 7};
    size_t size = frame(c, &schema_msg_ping, &msg, out);
    put(c, out, header ? 5 : size - 2);
}

static void garbage(const struct client *c, unsigned seed)
{
    uint8_t out[100];
    for (size_t i = 0; i < sizeof out; i++) {
        out[i] = (uint8_t)rand_r(&seed);
    }
    put(c, out, 1 + seed % sizeof out);
}

static void one(const struct world *world, unsigned number)
{
    enum kind kind = number % KINDS;
    struct client c = client_connect(world, number / KINDS % 4 == 3);
    if (kind == GREETING_ONLY) {
        greet(&c);
    } else if (kind != GARBAGE || number / KINDS % 2 == 0) {
        hello(&c);
    }
    switch (kind) {
    case UNREAD:
        ping(&c, 3, 5);
        break;
    case HALF_HEADER:
    case HALF_BODY:
        part(&c, kind == HALF_HEADER);
        break;
    case KILLED: /* the kernel closes its sockets, as here */
        ping(&c, DO_HOLD, 1);
        break;
    case SLOW:
        slow(&c);
        break;
    case RESENT:
        ping(&c, 4, 1);
        ck_assert_uint_eq(take_answer(&c), 4);
        ping(&c, 4, 1);
        ck_assert_uint_eq(take_answer(&c), 4);
        break;
    case TWICE:
        ping(&c, 5, 2);
        ck_assert_uint_eq(take_answer(&c), 5);
        ck_assert_uint_eq(take_answer(&c), 5);
        break;
    case GARBAGE:
        garbage(&c, number);
        break;
    default:
        break;
    }
    (void)close(c.fd);
}

static unsigned until; /* of the numbers */

static void *come_and_go(void *data)
{
    for (unsigned n = atomic_fetch_add(&next, 1); n < until; n = atomic_fetch_add(&next, 1)) {
        one(data, n);
    }
    return NULL;
}

static void run_until(struct world *world, unsigned end)
{
    pthread_t thread[THREADS];
    until = end;
    for (unsigned i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&thread[i], NULL, come_and_go, world), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    }
    atomic_store(&next, end);
}

static size_t memory(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%*u %lu", &pages), 1);
    (void)fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void client_churn(struct world *world)
{
    nng_socket s = dial(world->url);
    ck_assert_uint_eq(ask(s, 1), 1);
    int descriptors = descriptors_open();
    run_until(world, total / 10);
    size_t before = memory();
    run_until(world, total);
    while (descriptors_open() > descriptors) { /* until the last are closed */
        ck_assert_uint_eq(ask(s, 2), 2);
    }
    size_t after = memory();
    (void)printf(
        "%u connections: %d descriptors, memory %zu KiB after a tenth and %zu at the end\n", total,
        descriptors_open(), before / 1024, after / 1024);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they keep what is freed */
    ck_assert_uint_le(after, before + MEMORY);
#endif
    nng_close(s);
}

/* FAULT 41: connections by the hundred thousand: half messages, requests unread, killed,
 *   garbage
 * required: no descriptor and no memory stays in use
 * defence: `front/clients/connection.c`: connection_end; `front/clients/closer.c`:
 *   connections_closer
 * also: `front_listener_churn_test`; `front_listener_hostile_test`:
 *   one_that_goes_on_sending_is_closed_all_the_same,
 *   the_listener_closes_though_one_goes_on_sending */
START_TEST(nothing_is_left_of_connections_that_went)
{
    struct err e = ERR_INIT;
    struct listener_options options = usual;
    options.requests_max = 1024;
    options.connections_max = 1024;
    start(&options);
    port = free_port();
    (void)snprintf(w.url, sizeof w.url, "tcp://127.0.0.1:%u", port);
    ck_assert_msg(listener_add(w.listener, w.url, &e) == 0, "%s", e.text);
    (void)snprintf(w.url, sizeof w.url, "ipc://%s/s", w.dir);
    serve(client_churn);
    ck_assert_uint_eq(w.held_count, 0);
    ck_assert_uint_eq(w.stats.refused, 0);
    ck_assert_uint_gt(w.stats.protocol_errors, 0);
    ck_assert_uint_ge(w.stats.requests, total / KINDS * 15);
}
END_TEST

int main(void)
{
    const char *count = getenv("GPUD_CHURN");
    total = count != NULL ? (unsigned)strtoul(count, NULL, 10) : 3000;
    Suite *suite = suite_create("listener_churn");
    TCase *tc = tcase_create("listener_churn");
    tcase_set_timeout(tc, 60 + (double)total / 100);
    tcase_add_test(tc, nothing_is_left_of_connections_that_went);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
