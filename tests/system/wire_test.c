/* Bytes on the wire that no library would send: broken, too large, too deep, twice, too early, or
 * none at all. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/system/harness/harness.h"

#define SILENT           1000u
#define DESCRIPTORS      200u
#define DESCRIPTORS_MORE 1500u /* sealed buffers to fill a socket's buffer twice */
#define OTHERS           8u
#define PATIENT          "daemon.handshake_timeout_ms=60000"
#define CROWD            (DESCRIPTORS + 20u) /* the backlog holds the rest */

/* PROTOCOL.md: what a message may have, without the four bytes of its request id. */
#define MESSAGE_MAX (16u * 1024 * 1024 + 256u * 1024)

/* What the daemon may grow by for one client, in KiB. ASan keeps up to 256 MiB of freed memory. */
#ifdef __SANITIZE_ADDRESS__
#define GROWTH 524288u
#else
#define GROWTH 65536u
#endif

static struct daemon daemon_of_test;
static bool tcp;
static uint16_t port;
static uint32_t next_id = 0x80000000u;

static char far_url[64];
static char ipc_url[DAEMON_PATH];

/* setting: how long a connection may be silent before it sends HELLO. */
static gpud_client *begin_with(int transport, unsigned descriptors, const char *setting)
{
    tcp = transport == 1;
    tcp_url(far_url, sizeof far_url);
    port = (uint16_t)strtoul(strrchr(far_url, ':') + 1, NULL, 10);
    daemon_prepare(&daemon_of_test, "--backend", "sim", "--listen", ipc_url, "--listen", far_url,
                   "--set", setting, NULL);
    (void)snprintf(ipc_url, sizeof ipc_url, "%s", daemon_of_test.url);
    daemon_of_test.descriptors = descriptors;
    daemon_spawn(&daemon_of_test);
    daemon_wait_ready(&daemon_of_test);
    return client_open(tcp ? far_url : daemon_of_test.url);
}

static gpud_client *begin(int transport)
{
    return begin_with(transport, 0, PATIENT);
}

static void end(gpud_client *c)
{
    ck_gpud_ok(gpud_ping(c, NULL));
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 0);
    daemon_end(&daemon_of_test, c);
}

/* ---- a bare connection -------------------------------------------------------------------- */

static int connect_bare(void)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    (void)snprintf(un.sun_path, sizeof un.sun_path, "%s", ipc_url + strlen("ipc://"));
    int fd = socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_msg(fd >= 0, "socket: %s", strerror(errno));
    int rc = tcp ? connect(fd, (struct sockaddr *)&in, sizeof in)
                 : connect(fd, (struct sockaddr *)&un, sizeof un);
    ck_assert_msg(rc == 0, "connect: %s", strerror(errno));
    return fd;
}

static void send_bytes(int fd, const void *data, size_t size)
{
    /* the other side may have closed already: then the read reports it */
    (void)send(fd, data, size, MSG_NOSIGNAL);
}

/* false: the other side closed. */
static bool read_bytes(int fd, void *data, size_t size)
{
    uint8_t *at = data;
    while (size > 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ck_assert_msg(poll(&p, 1, (int)(PATIENCE / MS)) == 1, "neither an answer nor an end");
        ssize_t n = recv(fd, at, size, 0);
        if (n <= 0) {
            return false;
        }
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static void send_header(int fd)
{
    static const uint8_t header[8] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
    send_bytes(fd, header, sizeof header);
}

static int connect_sp(void)
{
    uint8_t answer[8];
    int fd = connect_bare();
    send_header(fd);
    ck_assert(read_bytes(fd, answer, sizeof answer));
    ck_assert_uint_eq(answer[5], 0x31);
    return fd;
}

struct message {
    size_t size;
    uint8_t data[4096];
};

static void put(struct message *m, const void *data, size_t size)
{
    ck_assert_uint_le(m->size + size, sizeof m->data);
    memcpy(m->data + m->size, data, size);
    m->size += size;
}

static void put_big(struct message *m, uint64_t value, unsigned bytes)
{
    for (unsigned i = bytes; i-- > 0;) {
        uint8_t byte = (uint8_t)(value >> (8 * i));
        put(m, &byte, 1);
    }
}

static void put_uint(struct message *m, uint64_t value)
{
    put_big(m, 0xcf, 1);
    put_big(m, value, 8);
}

static void put_array(struct message *m, unsigned count)
{
    put_big(m, 0xdc, 1);
    put_big(m, count, 2);
}

static void frame_make(struct message *frame, const struct message *m, uint32_t id)
{
    if (!tcp) {
        put_big(frame, 1, 1);
    }
    put_big(frame, m->size + 4, 8);
    put_big(frame, id, 4);
    put(frame, m->data, m->size);
}

/* A frame of these bytes with a new request id. Returns the id. */
static uint32_t send_frame(int fd, const struct message *m)
{
    struct message frame = {0};
    uint32_t id = ++next_id;
    frame_make(&frame, m, id);
    send_bytes(fd, frame.data, frame.size);
    return id;
}

/* The next answer and its id; false: the connection was closed. */
static bool read_frame(int fd, uint32_t *ret_id, struct message *ret_m)
{
    uint8_t head[13];
    size_t skip = tcp ? 0 : 1;
    if (!read_bytes(fd, head, 12 + skip)) {
        return false;
    }
    uint64_t size = 0;
    for (unsigned i = 0; i < 8; i++) {
        size = size << 8 | head[skip + i];
    }
    ck_assert_uint_ge(size, 4);
    ck_assert_uint_le(size - 4, sizeof ret_m->data);
    *ret_id = (uint32_t)head[skip + 8] << 24 | (uint32_t)head[skip + 9] << 16 |
              (uint32_t)head[skip + 10] << 8 | head[skip + 11];
    ret_m->size = size - 4;
    return read_bytes(fd, ret_m->data, ret_m->size);
}

/* The kind of an answer: its first element. */
static unsigned kind_of(const struct message *m)
{
    size_t at = m->data[0] == 0xdc ? 3 : m->data[0] == 0xdd ? 5 : 1;
    return m->data[at] == 0xcc ? m->data[at + 1] : m->data[at];
}

#define KIND_ERROR   64u
#define KIND_WELCOME 66u
#define KIND_BUFFER  68u

/* HELLO, so that requests of a session are taken. */
static void say_hello(int fd, uint8_t name)
{
    struct message m = {0};
    struct message answer;
    uint32_t id = 0;
    uint8_t client_id[18] = {0xc4, 16, name, 1, 2, 3};
    put_array(&m, 8);
    put_uint(&m, 1);
    put_uint(&m, 0);
    put_uint(&m, 0);
    put_uint(&m, 0);
    put_uint(&m, 1);
    put(&m, client_id, sizeof client_id);
    put_uint(&m, 1);
    put(&m, "\xa4wire", 5);
    uint32_t sent = send_frame(fd, &m);
    ck_assert(read_frame(fd, &id, &answer));
    ck_assert_uint_eq(id, sent);
    ck_assert_uint_eq(kind_of(&answer), KIND_WELCOME);
}

static uint32_t send_create(int fd, uint64_t seq, uint64_t count)
{
    struct message m = {0};
    put_array(&m, 11);
    put_uint(&m, 4);
    put_uint(&m, seq);
    put_uint(&m, 0);
    put_uint(&m, 10);
    put_uint(&m, 1);
    put_uint(&m, count);
    for (unsigned i = 0; i < 4; i++) {
        put_uint(&m, 0);
    }
    put(&m, "\xa1x", 2);
    return send_frame(fd, &m);
}

/* ---- broken messages ---------------------------------------------------------------------- */

/* An error or the end of the connection; never an answer as if it were good. */
static void expect_refusal(int fd, const char *what)
{
    uint32_t id = 0;
    struct message answer;
    if (read_frame(fd, &id, &answer)) {
        ck_assert_msg(kind_of(&answer) == KIND_ERROR, "%s: answer of kind %u", what,
                      kind_of(&answer));
    }
    (void)close(fd);
}

static void refused(const char *what, const struct message *m, bool hello)
{
    int fd = connect_sp();
    if (hello) {
        say_hello(fd, 77);
    }
    (void)send_frame(fd, m);
    expect_refusal(fd, what);
}

/* After a greeting: one that says nothing is closed anyway. */
static void closed(const char *what, const void *data, size_t size)
{
    uint8_t byte;
    int fd = connect_sp();
    say_hello(fd, 78);
    send_bytes(fd, data, size);
    ck_assert_msg(!read_bytes(fd, &byte, 1), "%s: an answer", what);
    (void)close(fd);
}

/* FAULT 29: deep or long msgpack
 * required: refused, nothing allocated
 * defence: `proto/pack.c`: pack_skip; `proto/codec.c`: list_read
 * also: `test_codec`: limits_are_named; `fuzz_proto`
 * mutants: depth, list-limit */
/* FAULT 30: malformed or truncated message
 * required: typed error or a closed connection
 * defence: `proto/codec.c`: proto_decode
 * also: `test_system_wire`: random_bytes; `fuzz_proto`
 * mutants: trailing-bytes */
START_TEST(malformed)
{
    gpud_client *c = begin(_i);
    static const struct {
        const char *what;
        struct message m;
    } bad[] = {
        {"nothing", {0, {0}}},
        {"not msgpack", {1, {0xc1}}},
        {"no array", {1, {7}}},
        {"an empty array", {1, {0x90}}},
        {"a kind that is not there", {4, {0x91, 0xcd, 0xff, 0xff}}},
        {"a negative kind", {2, {0x91, 0xff}}},
        {"an array that ends early", {3, {0x9f, 0x02, 0x00}}},
        {"an array of 2^32 elements", {6, {0xdd, 0xff, 0xff, 0xff, 0xff, 0x02}}},
        {"a text of 4 GiB", {10, {0x94, 0x14, 0, 0, 0xdb, 0xff, 0xff, 0xff, 0xff, 'x'}}},
        {"bytes of 4 GiB", {10, {0x94, 0x01, 0, 0, 0xc6, 0xff, 0xff, 0xff, 0xff, 'x'}}},
        {"bytes after the message", {5, {0x93, 0x02, 0x00, 0x00, 0x00}}},
        {"a text for a number", {6, {0x94, 0x03, 0x00, 0x00, 0xa1, 'x'}}},
    };
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        refused(bad[i].what, &bad[i].m, false);
        refused(bad[i].what, &bad[i].m, true);
    }
    struct message deep = {0};
    put(&deep, "\x94\x02\x00\x00", 4);
    for (unsigned i = 0; i < 4000; i++) {
        put(&deep, "\x91", 1);
    }
    put(&deep, "\x00", 1); /* complete, so that nothing but its depth is wrong */
    refused("4000 arrays in each other", &deep, true);
    ck_assert_uint_gt(query_value(c, "status", NULL, "protocol_errors"), 0);
    end(c);
}
END_TEST

/* A kind of request that only a newer daemon knows: the connection goes on. */
START_TEST(unknown_requests)
{
    gpud_client *c = begin(_i);
    const struct message newer = {5, {0x94, 0x3f, 0x00, 0x00, 0x90}};
    for (int greeted = 0; greeted < 2; greeted++) {
        uint32_t id = 0;
        struct message answer;
        int fd = connect_sp();
        if (greeted) {
            say_hello(fd, 79);
        }
        for (unsigned i = 0; i < 3; i++) {
            uint32_t sent = send_frame(fd, &newer);
            ck_assert(read_frame(fd, &id, &answer));
            ck_assert_uint_eq(id, sent);
            ck_assert_uint_eq(kind_of(&answer), KIND_ERROR);
            ck_assert_uint_eq(answer.data[2], 0xd0); /* the code: an int of 8 bits */
            ck_assert_int_eq((int8_t)answer.data[3], GPUD_ERR_UNSUPPORTED);
        }
        if (!greeted) {
            say_hello(fd, 79);
        }
        uint32_t sent = send_create(fd, 1, 10); /* no number was used up */
        ck_assert(read_frame(fd, &id, &answer));
        ck_assert_uint_eq(id, sent);
        ck_assert_uint_eq(kind_of(&answer), KIND_BUFFER);
        (void)close(fd);
    }
    end(c);
}
END_TEST

/* FAULT 28: giant message
 * required: connection closed before memory is taken; announced bytes cost nothing before they
 *   arrive
 * defence: `proto/sp.c`: frame_check, body_grow
 * also: `test_system_wire`: huge_buffer; `test_sp`: memory_follows_what_has_come; `fuzz_sp`
 * mutants: receive-limit */
START_TEST(frames)
{
    gpud_client *c = begin(_i);
    struct message huge = {0};
    struct message large = {0};
    struct message small = {0};
    uint8_t byte;
    if (!tcp) {
        put_big(&large, 1, 1);
        put_big(&huge, 1, 1);
        put_big(&small, 1, 1);
    }
    put_big(&huge, UINT64_C(1) << 40, 8);
    closed("a frame of 2^40 bytes", huge.data, huge.size);
    put_big(&large, MESSAGE_MAX + 5, 8);
    closed("a frame of one byte too many", large.data, large.size);
    put_big(&small, 2, 8);
    put_big(&small, 0, 2);
    closed("a frame without an id", small.data, small.size);
    int fd = connect_bare();
    send_bytes(fd, "GET / HTTP/1.1\r\n\r\n", 18);
    ck_assert(!read_bytes(fd, &byte, 1) || !read_bytes(fd, &(uint8_t[64]){0}, 64));
    (void)close(fd);
    /* cut off in the middle of a frame */
    fd = connect_sp();
    put_big(&huge, 0, 4);
    send_bytes(fd, huge.data, tcp ? 3 : 5);
    (void)close(fd);
    end(c);
}
END_TEST

START_TEST(random_bytes)
{
    gpud_client *c = begin(_i);
    uint32_t seed = 12345;
    for (unsigned round = 0; round < 200; round++) {
        struct message m = {0};
        int fd = connect_sp();
        say_hello(fd, (uint8_t)(round % 8));
        seed = seed * 1664525u + 1013904223u;
        unsigned size = 1 + (seed >> 16) % 200;
        put(&m, "\x9c", 1);
        for (unsigned i = 0; i < size; i++) {
            seed = seed * 1664525u + 1013904223u;
            put_big(&m, seed >> 24, 1);
        }
        (void)send_frame(fd, &m);
        (void)close(fd);
    }
    end(c);
}
END_TEST

/* ---- order -------------------------------------------------------------------------------- */

static void answers(int fd, unsigned count, const uint32_t *sent, struct message *ret_answers)
{
    for (unsigned n = 0; n < count; n++) {
        uint32_t id = 0;
        struct message m;
        ck_assert(read_frame(fd, &id, &m));
        unsigned i = 0;
        while (i < count && sent[i] != id) {
            i++;
        }
        ck_assert_msg(i < count, "an answer to no request");
        ck_assert_msg(ret_answers[i].size == 0, "two answers to one request");
        ret_answers[i] = m;
    }
}

/* FAULT 31: the same request twice, or early
 * required: one execution, the same answer, in order
 * defence: `front/requests/intake.c`: sequenced
 * mutants: dedup, order */
/* Sequence numbers decide the order, not arrival. A repeated request is done once and answered
 * twice alike. */
START_TEST(out_of_order_and_twice)
{
    gpud_client *c = begin(_i);
    static struct message first[3];
    static struct message again[3];
    uint32_t sent[3];
    int fd = connect_sp();
    say_hello(fd, 1);
    for (unsigned i = 0; i < 3; i++) {
        sent[i] = send_create(fd, 3 - i, 1000 * (3 - i));
    }
    memset(first, 0, sizeof first);
    memset(again, 0, sizeof again);
    answers(fd, 3, sent, first);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_uint_eq(kind_of(&first[i]), KIND_BUFFER);
        sent[i] = send_create(fd, 3 - i, 1000 * (3 - i));
    }
    answers(fd, 3, sent, again);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_uint_eq(first[i].size, again[i].size);
        ck_assert_mem_eq(first[i].data, again[i].data, first[i].size);
    }
    memset(first, 0, sizeof first);
    (void)send_create(fd, 5, 5000); /* before its turn, and again: the older one gets no answer */
    sent[0] = send_create(fd, 5, 5000);
    sent[1] = send_create(fd, 4, 4000);
    answers(fd, 2, sent, first);
    ck_assert_uint_eq(kind_of(&first[0]), KIND_BUFFER);
    ck_assert_uint_eq(kind_of(&first[1]), KIND_BUFFER);
    ck_assert_uint_eq(query_value(c, "devices", "0", "buffers"), 4 * 15000);
    ck_assert_uint_ge(query_value(c, "status", NULL, "deduplicated"), 4);
    (void)close(fd);
    end(c);
}
END_TEST

/* 2^63 bytes, straight on the wire. */
START_TEST(huge_buffer)
{
    gpud_client *c = begin(_i);
    int fd = connect_sp();
    say_hello(fd, 2);
    for (unsigned i = 0; i < 4; i++) {
        uint32_t id = 0;
        struct message answer;
        uint64_t count = i < 3 ? UINT64_C(1) << (60 + i) : UINT64_MAX;
        uint32_t sent = send_create(fd, i + 1, count);
        ck_assert(read_frame(fd, &id, &answer));
        ck_assert_uint_eq(id, sent);
        ck_assert_uint_eq(kind_of(&answer), KIND_ERROR);
    }
    (void)close(fd);
    end(c);
}
END_TEST

/* ---- clients that do not send or do not read ------------------------------------------------ */

static void fill_works(gpud_client *c)
{
    float out[4] = {0};
    gpud_arg args[] = {gpud_f32(6), gpud_host_out(out, 4, GPUD_F32)};
    ck_gpud_ok(gpud_call(c, kernel_find(c, "fill"), args, 2, NULL));
    ck_assert_float_eq(out[3], 6);
}

/* FAULT 26: silent connections, too many
 * required: closed after the handshake's time; a cap, and a connection without a place is
 *   refused (`BUSY`); administrators have places beyond it, and an idle one of theirs makes
 *   room for the next
 * defence: `front/clients/listener.c`: on_timer; `front/clients/places.c`: place_take,
 *   has_place
 * also: `front_listener_full_test`: connections_over_the_cap_are_closed,
 *   one_too_many_is_told_so; `front_listener_hostile_test`:
 *   idle_administrators_make_room_for_the_next
 * mutants: handshake, connection-cap, idle-administrator */
START_TEST(silent_connections)
{
    static int fd[SILENT];
    struct rlimit limit = {0};
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_gt(limit.rlim_cur, SILENT + 50);
    gpud_client *c = begin_with(_i, 0, "daemon.handshake_timeout_ms=3000");
    for (unsigned i = 0; i < SILENT; i++) { /* some say which protocol they speak, no more */
        fd[i] = connect_bare();
        if (i % 2 != 0) {
            send_header(fd[i]);
        }
    }
    gpud_client *other = client_open(ipc_url);
    fill_works(other);
    gpud_close(other);
    uint8_t byte[64];
    for (unsigned i = 0; i < SILENT; i++) { /* the daemon ends each of them, after its header */
        struct pollfd p = {.fd = fd[i], .events = POLLIN};
        do {
            ck_assert_msg(poll(&p, 1, (int)(PATIENCE / MS)) == 1, "silent connection %u stays", i);
        } while (recv(fd[i], byte, sizeof byte, 0) > 0);
        (void)close(fd[i]);
    }
    end(c);
}
END_TEST

/* What a line of a file in the daemon's /proc says behind its name. */
static unsigned long proc_value(const char *file, const char *name)
{
    static char text[DAEMON_OUTPUT];
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)daemon_of_test.pid, file);
    file_read(path, text, sizeof text);
    const char *line = strstr(text, name);
    ck_assert_ptr_nonnull(line);
    return strtoul(line + strlen(name), NULL, 10);
}

static unsigned descriptors_open(void)
{
    char path[64];
    unsigned count = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)daemon_of_test.pid);
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    (void)closedir(dir);
    return count - 2; /* "." and ".." */
}

/* FAULT 25: out of descriptors
 * required: some are reserved: workers and launchers are replaced, new connections wait, the
 *   log and `gpuctl status` report it. Sealing and arenas are refused before connections wait,
 *   so that owners of sealed buffers can reconnect. A worker without descriptors refuses frames
 *   that bring one, and rings, and keeps its buffers
 * defence: `common/descriptors.c`; `front/clients/door.c`: accept_next, doors_starve;
 *   `front/requests/buffer.c`: request_buffer_seal; `worker/serve/serve_frames.c`: serve_one
 * also: `test_system_wire`: sealed_until_refused; `common_descriptors_test`:
 *   there_is_room_for_connections; `worker_channel_test`:
 *   a_worker_without_descriptors_does_without, an_arena_without_a_descriptor_comes_again
 * mutants: descriptors, accept-again, descriptors-sealed, descriptors-room */
/* More connections than the daemon has descriptors: it reserves some. Connected clients are served,
 * a worker that ends gets a successor, and new clients are served once the silent connections are
 * closed. */
START_TEST(out_of_descriptors)
{
    static int fd[CROWD];
    char text[512];
    gpud_client *c = begin_with(_i, DESCRIPTORS, PATIENT);
    pid_t worker = daemon_worker(&daemon_of_test, 0);
    for (unsigned i = 0; i < CROWD; i++) {
        fd[i] = connect_bare();
    }
    ck_until(descriptors_open() >= DESCRIPTORS * 3 / 4 - 1); /* the rest is kept back */
    fill_works(c);
    ck_until((query_text(c, "status", NULL, "problem", text, sizeof text),
              strstr(text, "out of descriptors") != NULL));
    query_text(c, "status", NULL, "state", text, sizeof text);
    ck_assert_str_eq(text, "degraded");
    ck_assert(daemon_logged(&daemon_of_test, "out of descriptors"));
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    ck_until(query_value(c, "devices", "0", "worker") != (uint64_t)worker);
    fill_works(c);
    for (unsigned i = 0; i < CROWD; i++) {
        (void)close(fd[i]);
    }
    gpud_client *other = client_open(ipc_url);
    fill_works(other);
    gpud_close(other);
    /* the last of the silent ones are still being closed */
    ck_until(
        (query_text(c, "status", NULL, "state", text, sizeof text), strcmp(text, "ready") == 0));
    ck_until(daemon_logged(&daemon_of_test, "descriptors are free again"));
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 1);
    daemon_end(&daemon_of_test, c);
}
END_TEST

static void others_work(gpud_client *const other[])
{
    for (unsigned i = 0; i < OTHERS; i++) {
        fill_works(other[i]);
    }
}

/* A sealed buffer's copy takes a descriptor: one client cannot seal until other clients, or its own
 * next connection, have none left. The copies are restored to the next worker and handed to the
 * next front, though both are more than a socket takes at once, and no descriptors are left for
 * those that wait. */
START_TEST(sealed_until_refused)
{
    static gpud_buffer b[DESCRIPTORS_MORE];
    gpud_client *other[OTHERS];
    const unsigned descriptors = _i < 2 ? DESCRIPTORS : DESCRIPTORS_MORE;
    gpud_client *c = begin_with(_i % 2, descriptors, PATIENT);
    pid_t worker = daemon_worker(&daemon_of_test, 0);
    unsigned count = 0;
    int rc = 0;
    while (count < descriptors && rc == 0) {
        ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 4), 0, NULL, &b[count]));
        ck_gpud_ok(gpud_fill(c, gpud_out(b[count]), gpud_f32((float)count)));
        rc = gpud_buffer_seal(c, b[count]);
        count += rc == 0;
    }
    ck_assert_int_eq(rc, GPUD_ERR_LIMIT);
    ck_assert_uint_gt(count, descriptors / 4);
    for (unsigned i = 0; i < OTHERS; i++) {
        other[i] = client_open(ipc_url);
    }
    others_work(other);
    char text[512];
    query_text(c, "status", NULL, "problem", text, sizeof text);
    ck_assert_msg(strstr(text, "few descriptors are left") != NULL, "%s", text);
    float v = 0;
    if (_i < 3) {
        ck_assert_int_eq(kill(worker, SIGKILL), 0);
        ck_until(query_value(c, "devices", "0", "worker") != (uint64_t)worker);
    } else {
        daemon_hand_over(&daemon_of_test);
        daemon_spawn(
            &daemon_of_test); /* it listens when it has all, and is not "ready", but short */
        ck_gpud_ok(gpud_ping(c, NULL));
        ck_assert_int_eq(daemon_worker(&daemon_of_test, 0), worker);
    }
    ck_gpud_ok(gpud_read(c, b[count - 1], GPUD_F32, 3, 1, &v, NULL));
    ck_assert_float_eq(v, (float)(count - 1));
    ck_gpud_ok(gpud_buffer_free(c, b[0]));
    ck_gpud_ok(gpud_buffer_free(c, b[1]));
    others_work(other);
    for (unsigned i = 0; i < OTHERS; i++) {
        gpud_close(other[i]);
    }
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), _i < 3 ? 1 : 0);
    daemon_end(&daemon_of_test, c);
}
END_TEST

/* A question whose answer is long. */
static void ask_config(struct message *m)
{
    put_array(m, 5);
    put_uint(m, 20);
    put_uint(m, 0);
    put_uint(m, 0);
    put(m,
        "\xa6"
        "config",
        7);
    put(m, "\xa0", 1);
}

/* Sends the frame so many times, or until nothing more is taken for a second. */
static void flood(int fd, const struct message *m, uint64_t times)
{
    ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    for (uint64_t i = 0; i < times; i++) {
        size_t done = 0;
        while (done < m->size) {
            ssize_t n = send(fd, m->data + done, m->size - done, MSG_NOSIGNAL);
            struct pollfd p = {.fd = fd, .events = POLLOUT};
            if (n < 0 && (errno != EAGAIN || poll(&p, 1, 1000) == 0)) {
                return;
            }
            done += n > 0 ? (size_t)n : 0;
        }
    }
}

/* FAULT 27: client that never reads, or never ends its message
 * required: dropped beyond a limit of outstanding requests and bytes of answers; a message that
 *   stays half sent for 60 s ends its connection; memory stays bounded
 * defence: `front/clients/slot.c`: is_allowed; `front/clients/writer.c`: queue;
 *   `front/clients/listener.c`: on_timer
 * also: `front_listener_hostile_test`: unread_answers_end_their_connection,
 *   half_a_message_ends_its_connection
 * mutants: pipe-requests, unread-answers, half-message */
/* Asks and asks and never takes an answer: more than twice as many bytes of answers as the daemon
 * may grow by. Its answers are dropped or it is stopped, and the others are served. */
START_TEST(never_reads)
{
    gpud_client *c = begin(_i);
    struct message query = {0};
    struct message answer;
    uint32_t id = 0;
    int fd = connect_sp();
    say_hello(fd, 3);
    ask_config(&query);
    (void)send_frame(fd, &query);
    ck_assert(read_frame(fd, &id, &answer));
    ck_assert_uint_gt(answer.size, 500);
    struct message frame = {0};
    frame_make(&frame, &query, id + 1);
    unsigned long before = proc_value("status", "VmRSS:");
    flood(fd, &frame, UINT64_C(2) * GROWTH * 1024 / answer.size);
    ck_assert_msg(proc_value("status", "VmRSS:") < before + GROWTH,
                  "answers are kept for a client that takes none");
    ck_gpud_ok(gpud_ping(c, NULL));
    (void)close(fd);
    end(c);
}
END_TEST

static void prints_ok(const char *const *argv)
{
    static char text[DAEMON_OUTPUT];
    char out[DAEMON_PATH + 32];
    (void)snprintf(out, sizeof out, "%s/printed", daemon_of_test.dir);
    int status = run_program(argv, out, out);
    file_read(out, text, sizeof text);
    ck_assert_msg(status == 0, "%s", text);
    ck_assert_str_eq(text, "ok\n");
}

/* The client that was written from the protocol's text. */
START_TEST(protocol_client)
{
    gpud_client *c = begin(_i);
    const char *const argv[] = {"python3", SYSTEM_SOURCE "/protocol_client.py",
                                tcp ? far_url : ipc_url, NULL};
    prints_ok(argv);
    end(c);
}
END_TEST

/* What else the text says, on a daemon. */
START_TEST(protocol_rules)
{
    gpud_client *c = begin(_i);
    const char *const argv[] = {"python3",
                                "-B",
                                SYSTEM_SOURCE "/protocol_rules.py",
                                tcp ? far_url : ipc_url,
                                SYSTEM_SOURCE "/../../proto/PROTOCOL.md",
                                NULL};
    prints_ok(argv);
    end(c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wire");
    suite_add_loop(suite, malformed, 2);
    suite_add_loop(suite, unknown_requests, 2);
    suite_add_loop(suite, frames, 2);
    suite_add_loop(suite, random_bytes, 2);
    suite_add_loop(suite, out_of_order_and_twice, 2);
    suite_add_loop(suite, huge_buffer, 2);
    suite_add_loop(suite, silent_connections, 2);
    suite_add_loop(suite, out_of_descriptors, 2);
    suite_add_loop(suite, sealed_until_refused, 4);
    suite_add_loop(suite, never_reads, 2);
    suite_add_loop(suite, protocol_client, 2);
    suite_add_loop(suite, protocol_rules, 2);
    return system_main(suite);
}
