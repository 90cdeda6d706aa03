/* The front and a launcher that is played by the test. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/memfd.h"
#include "common/seqpacket.h"
#include "daemon/front/workers/record.h"
#include "proto/codec.h"
#include "tests/system/harness/harness.h"

#define WORKER 1u /* the first that is asked for */

static struct daemon d;
static int listening;
static int front; /* the connection to it */
static uint8_t frame[FRAME_MAX_BYTES];
static size_t frame_size;

/* ---- a launcher ----------------------------------------------------------------------------- */

static void await_readable(int fd, const char *what)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ck_assert_msg(poll(&p, 1, (int)(PATIENCE / MS)) == 1, "%s does not come", what);
}

static void say(const struct schema *schema, const void *msg, const struct frame_fds *fds)
{
    struct capbuf out;
    struct err e = ERR_INIT;
    capbuf_init(&out, FRAME_MAX_BYTES);
    ck_assert_int_eq(proto_encode(schema, msg, &out, &e), 0);
    ck_assert_int_eq(seqpacket_send(front, out.data, out.size, fds, &e), 0);
    capbuf_finish(&out);
}

/* The next frame's kind. */
static unsigned next(int fd, const char *what)
{
    struct err e = ERR_INIT;
    struct frame_fds fds = {.count = 0};
    await_readable(fd, what);
    ck_assert_int_eq(seqpacket_recv(fd, frame, sizeof frame, &frame_size, &fds, &e), 0);
    frame_fds_close(&fds);
    return proto_kind(bytes_of(frame, frame_size));
}

static void read_as(const struct schema *schema, void *ret_msg)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(proto_decode(schema, bytes_of(frame, frame_size), ret_msg, &e), 0);
}

/* The next frame of that kind; frames of other kinds are skipped. */
static void hear(int fd, const struct schema *schema, void *ret_msg)
{
    while (next(fd, schema->name) != schema->kind) {
    }
    read_as(schema, ret_msg);
}

/* Of whatever build the front is. */
static void meet(void)
{
    struct msg_l_hello hello;
    struct msg_l_list list;
    await_readable(listening, "the front");
    front = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    ck_assert_int_ge(front, 0);
    hear(front, &schema_msg_l_hello, &hello);
    say(&schema_msg_l_hello, &hello, NULL);
    hear(front, &schema_msg_l_list, &list);
}

static void begin(void)
{
    char path[DAEMON_PATH + 16];
    struct err e = ERR_INIT;
    daemon_prepare(&d, "--backend", "sim", "--supervised", NULL);
    (void)snprintf(path, sizeof path, "%s/launcher.sock", d.dir);
    ck_assert_int_eq(seqpacket_listen(path, &listening, &e), 0);
    daemon_spawn(&d);
    meet();
}

static bool listens(void)
{
    struct stat st;
    return stat(d.url + strlen("ipc://"), &st) == 0;
}

/* A worker from before. Its end of the channel. */
static int hold_worker(void)
{
    struct err e = ERR_INIT;
    struct capbuf device;
    struct memfd staging = MEMFD_NONE;
    int channel[2];
    const struct msg_record_worker m = {.backend = bytes_str("sim")};
    capbuf_init(&device, FRAME_DEVICE_MAX);
    ck_assert_int_eq(proto_encode(&schema_msg_record_worker, &m, &device, &e), 0);
    ck_assert_int_eq(seqpacket_pair(channel, &e), 0);
    ck_assert_int_eq(memfd_create_sealed("staging", 4096, &staging, &e), 0);
    const struct msg_l_inventory inventory = {
        .id = WORKER, .pid = (uint64_t)getpid(), .device = capbuf_view(&device)};
    struct record *record = NULL;
    ck_assert_int_eq(record_create(1, &record, &e), 0);
    const struct frame_fds fds = {.fd = {channel[0], staging.fd, staging.fd, record_fd(record)},
                                  .count = 4};
    say(&schema_msg_l_inventory, &inventory, &fds);
    capbuf_finish(&device);
    memfd_finish(&staging);
    record_destroy(record);
    (void)close(channel[0]);
    return channel[1];
}

/* A copy from before. */
static void hold_copy(uint64_t id)
{
    struct err e = ERR_INIT;
    struct memfd copy = MEMFD_NONE;
    ck_assert_int_eq(memfd_create_sealed("copy", 4096, &copy, &e), 0);
    const struct frame_fds fds = {.fd = {copy.fd}, .count = 1};
    say(&schema_msg_l_kept, &(const struct msg_l_kept){.id = id}, &fds);
    memfd_finish(&copy);
}

/* ---- tests ---------------------------------------------------------------------------------- */

static const int ENDS[] = {SIGUSR1, SIGTERM, SIGINT};
#define END_COUNT ((int)(sizeof ENDS / sizeof ENDS[0]))

/* The launcher does not list its workers, or a worker does not report its inventory: a front that
 * gets SIGTERM meanwhile ends without having served a client. */
START_TEST(told_to_end_before_it_serves)
{
    begin();
    int worker = -1;
    if (_i >= END_COUNT) {
        struct msg_f_inventory ask;
        worker = hold_worker();
        hear(worker, &schema_msg_f_inventory, &ask);
    }
    ck_assert_int_eq(kill(d.pid, ENDS[_i % END_COUNT]), 0);
    ck_assert_int_eq(daemon_wait(&d), 0);
    ck_assert(!daemon_logged(&d, "did not finish in time"));
    ck_assert(!listens());
    if (worker >= 0) {
        (void)close(worker);
    }
    (void)close(front);
    (void)close(listening);
}
END_TEST

/* The connection breaks, and not the launcher: what runs there was given up, and is ended, and what
 * is kept there is released. */
START_TEST(another_connection_to_the_same_launcher)
{
    struct msg_l_worker asked = {0};
    struct msg_l_kill ended = {.id = 0};
    struct msg_l_release released = {.id = 0};
    int channel[2];
    struct err e = ERR_INIT;
    begin();
    say(&schema_msg_l_listed, &(const struct msg_l_listed){.count = 0}, NULL);
    hear(front, &schema_msg_l_worker, &asked);
    ck_assert_uint_eq(asked.id, WORKER);
    ck_assert_int_eq(seqpacket_pair(channel, &e), 0);
    const struct msg_l_started started = {
        .id = WORKER, .pid = (uint64_t)getpid(), .text = bytes_str("")};
    say(&schema_msg_l_started, &started, &(const struct frame_fds){.fd = {channel[0]}, .count = 1});
    (void)close(channel[0]);
    ck_until(listens());
    (void)close(front);
    meet();
    hold_copy(77);
    int held = hold_worker();
    say(&schema_msg_l_listed, &(const struct msg_l_listed){.count = 1}, NULL);
    /* in any order; the device is opened again */
    while (ended.id == 0 || asked.id == WORKER || released.id == 0) {
        unsigned kind = next(front, "the end of the old worker, and a new one");
        if (kind == FRAME_KIND_L_KILL) {
            read_as(&schema_msg_l_kill, &ended);
            const struct msg_l_ended gone = {
                .id = WORKER, .pid = (uint64_t)getpid(), .status = SIGKILL};
            say(&schema_msg_l_ended, &gone, NULL);
        } else if (kind == FRAME_KIND_L_WORKER) {
            read_as(&schema_msg_l_worker, &asked);
        } else if (kind == FRAME_KIND_L_RELEASE) {
            read_as(&schema_msg_l_release, &released);
        }
    }
    ck_assert_uint_eq(ended.id, WORKER);
    ck_assert_uint_eq(ended.signal, SIGKILL);
    ck_assert_uint_eq(released.id, 77);
    ck_assert_int_eq(kill(d.pid, SIGTERM), 0);
    ck_assert_int_eq(daemon_wait(&d), 0);
    (void)close(held);
    (void)close(channel[1]);
    (void)close(front);
    (void)close(listening);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("launcher");
    suite_add_loop(suite, told_to_end_before_it_serves, 2 * END_COUNT);
    suite_add(suite, another_connection_to_the_same_launcher);
    return system_main(suite);
}
