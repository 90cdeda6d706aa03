/*
 * Connections of ten kinds to the real daemon, which come, ask and go without reading: none leaves
 * a descriptor behind, and memory does not grow once the first tenth has gone. GPUD_CHURN says how
 * many (2,000); scripts/nightly.sh takes more.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/shape.h"
#include "proto/codec.h"
#include "proto/sp.h"
#include "tests/system/harness/harness.h"

#define AT_ONCE     32u
#define MEMORY_KIB  (8u * 1024) /* that it may grow by: what malloc keeps of a peak */
#define CONNECTIONS 64u         /* the daemon's limit */

enum kind {
    GREETING_ONLY,
    HELLO_ONLY,
    UNREAD,
    HALF_HEADER,
    HALF_BODY,
    WORKED_ON, /* gone while a buffer is made for it */
    BYTE_BY_BYTE,
    RESENT,
    TWICE, /* two at once with one id */
    GARBAGE,
    KINDS
};

static struct daemon d;
static char far_url[64];

struct client {
    int fd;
    bool tcp;
};

/* ---- what they do ---------------------------------------------------------------------------- */

static struct client client_connect(bool tcp)
{
    const struct linger at_once = {.l_onoff = 1}; /* keeps no port busy */
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(strrchr(far_url, ':') + 1)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    (void)snprintf(un.sun_path, sizeof un.sun_path, "%s/gpud.sock", d.dir);
    int fd = socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert(!tcp || setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
    ck_assert_int_eq(tcp ? connect(fd, (const struct sockaddr *)&in, sizeof in)
                         : connect(fd, (const struct sockaddr *)&un, sizeof un),
                     0);
    return (struct client){.fd = fd, .tcp = tcp};
}

/* The daemon may have closed it. */
static void put(const struct client *c, const void *data, size_t size)
{
    (void)!send(c->fd, data, size, MSG_NOSIGNAL);
}

static void put_slowly(const struct client *c, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        put(c, data + i, 1);
    }
}

/* A frame; returns its size. */
static size_t frame(const struct client *c, const struct schema *schema, const void *msg,
                    uint8_t out[600])
{
    struct capbuf body;
    capbuf_init(&body, 512);
    ck_assert_int_eq(proto_encode(schema, msg, &body, NULL), 0);
    size_t head = sp_head(c->tcp ? SP_TCP : SP_IPC, 0x80000001u, body.size, out);
    memcpy(out + head, body.data, body.size);
    size_t size = head + body.size;
    capbuf_finish(&body);
    return size;
}

static void greet(const struct client *c)
{
    uint8_t hello[SP_HELLO_BYTES];
    sp_hello(SP_REQ, hello);
    put(c, hello, sizeof hello);
}

static void say_hello(const struct client *c, unsigned number)
{
    uint8_t out[600];
    uint8_t id[PROTO_CLIENT_ID_BYTES] = {(uint8_t)number, (uint8_t)(number >> 8), 1};
    struct msg_hello msg = {
        .major = PROTO_MAJOR, .client_id = bytes_of(id, sizeof id), .resume = 1};
    greet(c);
    put(c, out, frame(c, &schema_msg_hello, &msg, out));
}

static size_t query(const struct client *c, uint8_t out[600])
{
    struct msg_query msg = {.what = bytes_str("config")};
    return frame(c, &schema_msg_query, &msg, out);
}

static void create(const struct client *c, uint64_t seq)
{
    uint8_t out[600];
    struct msg_buffer_create msg = {
        .seq = seq, .dtype = DTYPE_F32, .ndim = 1, .d0 = 100000, .flags = BUFFER_FLAG_ZERO};
    put(c, out, frame(c, &schema_msg_buffer_create, &msg, out));
}

static void ask(const struct client *c, unsigned number, enum kind kind)
{
    uint8_t out[600];
    size_t size = query(c, out);
    say_hello(c, number);
    switch (kind) {
    case UNREAD:
        for (unsigned i = 0; i < 16; i++) {
            put(c, out, size);
        }
        break;
    case HALF_HEADER:
        put(c, out, 5);
        break;
    case HALF_BODY:
        put(c, out, size - 2);
        break;
    case BYTE_BY_BYTE:
        put_slowly(c, out, size);
        break;
    case WORKED_ON:
        create(c, 1);
        break;
    case RESENT:
        create(c, 1);
        create(c, 1);
        break;
    case GARBAGE:
        memset(out + size / 2, 0xc1, size - size / 2);
        put(c, out, size);
        break;
    default: /* HELLO_ONLY, TWICE */
        break;
    }
}

static struct client one(unsigned number)
{
    enum kind kind = number % KINDS;
    struct client c = client_connect(number / KINDS % 2 == 1);
    if (kind == GREETING_ONLY) {
        greet(&c);
    } else {
        ask(&c, kind == TWICE ? 1 : number, kind);
    }
    return c;
}

/* Until so many have come; some are there at once. */
static void come_and_go(unsigned *number, unsigned end)
{
    struct client there[AT_ONCE];
    while (*number < end) {
        for (unsigned i = 0; i < AT_ONCE; i++) {
            there[i] = one((*number)++);
        }
        for (unsigned i = 0; i < AT_ONCE; i++) {
            (void)close(there[i].fd);
        }
    }
}

/* ---- what stays ------------------------------------------------------------------------------ */

static unsigned descriptors(void)
{
    char path[64];
    unsigned count = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)d.pid);
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    (void)closedir(dir);
    return count;
}

static unsigned long memory_kib(void)
{
    static char text[DAEMON_OUTPUT];
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)d.pid);
    file_read(path, text, sizeof text);
    const char *line = strstr(text, "VmRSS:");
    ck_assert_ptr_nonnull(line);
    return strtoul(line + strlen("VmRSS:"), NULL, 10);
}

static gpud_client *begin(const char *key)
{
    static char ipc_url[DAEMON_PATH];
    tcp_url(far_url, sizeof far_url);
    daemon_prepare(&d, "--backend", "sim", "--backend-options", "speed=0", "--set",
                   "jobs.session_linger_ms=0", "--set", key, "--listen", ipc_url, "--listen",
                   far_url, NULL);
    (void)snprintf(ipc_url, sizeof ipc_url, "%s", d.url);
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    return client_open(d.url);
}

/* FAULT 41: clients that connect, ask and leave without reading, in thousands: greetings alone,
 *   half messages, requests unread, resent, twice at once, garbage
 * required: every connection ends; no descriptor, no memory, no buffer and no place stays in use
 * defence: `front/clients/connection.c`: connection_end; `front/clients/closer.c`:
 *   connections_closer
 * also: `front_listener_churn_test`: nothing_is_left_of_connections_that_went;
 *   `front_listener_hostile_test`: one_that_goes_on_sending_is_closed_all_the_same,
 *   the_listener_closes_though_one_goes_on_sending
 * mutants: connections-left */
START_TEST(nothing_is_left_of_connections)
{
    const char *count = getenv("GPUD_CHURN");
    unsigned total = count != NULL ? (unsigned)strtoul(count, NULL, 10) : 2000;
    unsigned number = 0;
    gpud_client *c = begin("daemon.handshake_timeout_ms=60000");
    ck_gpud_ok(gpud_ping(c, NULL));
    unsigned open = descriptors();
    come_and_go(&number, total / 10);
    unsigned long before = memory_kib();
    come_and_go(&number, total);
    ck_until(descriptors() <= open);
    ck_until(query_value(c, "status", NULL, "sessions") == 1);
    ck_until(query_value(c, "devices", "0", "buffers") == 0);
    gpud_close(client_open(far_url)); /* there is a place, also for others than administrators */
    (void)before;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they keep what is freed */
    ck_assert_uint_le(memory_kib(), before + MEMORY_KIB);
#endif
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 0);
    daemon_end(&d, c);
}
END_TEST

/* FAULT 41: all places are taken by connections of others
 * required: administrators find a place: some are reserved for them
 * defence: `front/clients/places.c`: has_place
 * also: `front_listener_hostile_test`: idle_administrators_make_room_for_the_next
 * mutants: reserved-places, idle-administrator */
START_TEST(administrators_find_a_place)
{
    static char out[DAEMON_OUTPUT];
    static char err[DAEMON_OUTPUT];
    struct client there[CONNECTIONS];
    char key[64];
    (void)snprintf(key, sizeof key, "daemon.connections_max=%u", CONNECTIONS);
    gpud_client *c = begin(key);
    gpud_close(c);
    for (unsigned i = 0; i < CONNECTIONS;
         i++) { /* a session over tcp has no rights of an administrator */
        there[i] = client_connect(true);
        say_hello(&there[i], i);
    }
    gpud_client *refused = NULL;
    gpud_options o = {.size = sizeof o, .connect_timeout_ns = SECOND};
    ck_until(gpud_open(far_url, &o, &refused) != 0 || (gpud_close(refused), false));
    ck_assert_int_eq(gpuctl(&d, out, err, "status", NULL), 0);
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        (void)close(there[i].fd);
    }
    c = client_open(far_url);
    daemon_end(&d, c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("connections");
    suite_add(suite, nothing_is_left_of_connections);
    suite_add(suite, administrators_find_a_place);
    return system_main(suite);
}
