/*
 * The socket for descriptors: the daemon's side on a loop that the test turns, clients by hand, or
 * libgpud's side in a thread.
 */
#include "daemon/front/clients/shm.h"
#include "daemon/front/settings/listener_url.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/src/wire/shm.h"
#include "common/clock.h"
#include "proto/codec.h"
#include "tests/unit/common/lasting.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/scratch.h"

static uv_loop_t loop;
static char dir[SCRATCH_PATH];
static struct shm *shm;
static unsigned claims;
static unsigned gones;
static int kept; /* what a claim brought */
static bool keep;
static int grants[FRAME_MAX_FDS];
static int grant_count;
static int claim_error;
static int before; /* descriptors that were open */

static int on_claim(void *data, struct frame_fds *given, struct frame_fds *ret_fds, struct err *e)
{
    ck_assert_ptr_eq(data, &loop);
    claims++;
    if (claim_error != 0) {
        return err_set(e, claim_error, "not this one");
    }
    if (keep) {
        kept = given->fd[0];
        given->fd[0] = -1;
    }
    for (int i = 0; i < grant_count; i++) {
        ret_fds->fd[ret_fds->count++] = grants[i];
    }
    return 0;
}

static void on_gone(void *data)
{
    ck_assert_ptr_eq(data, &loop);
    gones++;
}

static struct shm_options options;

static void begin(uint64_t patience_ns)
{
    struct err e = ERR_INIT;
    scratch_make(dir);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    loop_finish(&loop); /* what libuv keeps for itself is there now */
    before = descriptors_open();
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    options = shm_defaults;
    options.claim_ns = options.ticket_ns = patience_ns;
    int rc = shm_create(&loop, scratch_path(dir, "shm.sock"), &options, &shm, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    claims = gones = 0;
    claim_error = grant_count = 0;
    keep = false;
}

static void setup(void)
{
    begin(60 * NS_PER_S);
}

/* What is looked at before this is over takes some microseconds. */
#define BRIEF_NS (2 * NS_PER_S)

static void setup_brief(void)
{
    begin(BRIEF_NS);
}

static void teardown(void)
{
    shm_destroy(shm);
    loop_finish(&loop);
    struct stat st;
    ck_assert_int_ne(stat(scratch_path(dir, "shm.sock"), &st), 0);
    scratch_remove(dir);
    for (int i = 0; i < 60000 && descriptors_open() != before; i++) {
        (void)poll(NULL, 0, 1); /* threads may close yet what there was */
    }
    ck_assert_int_eq(descriptors_open(), before);
}

static struct shm_stats stats(void)
{
    struct shm_stats s;
    shm_stats(shm, &s);
    return s;
}

static void turn_once(void)
{
    for (int i = 0; i < 20; i++) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    }
}

/* Until all that was sent has been dealt with, by threads too. */
static void turn(void)
{
    turn_once();
    while (stats().working > 0) {
        (void)poll(NULL, 0, 1);
        turn_once();
    }
}

/* After its clients' sockets were closed. A connection that was refused before was closed by a
 * thread that has copies of them, until it ends. */
static void turn_until_closed(void)
{
    for (int i = 0; i < 60000 && stats().connections > 0; i++) {
        (void)poll(NULL, 0, 1);
        turn();
    }
    ck_assert_uint_eq(stats().connections, 0);
}

static void offer(unsigned give, uint32_t uid, uint8_t ret_nonce[PROTO_NONCE_BYTES])
{
    struct err e = ERR_INIT;
    struct ticket t = {
        .uid = uid, .give = give, .claim = on_claim, .expired = on_gone, .data = &loop};
    ck_assert_int_eq(shm_offer(shm, &t, ret_nonce, &e), 0);
}

static int dial(void)
{
    int fd = -1;
    struct err e = ERR_INIT;
    int rc = seqpacket_connect(shm_path(shm, 0), &fd, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    return fd;
}

static int sent = STDERR_FILENO; /* the descriptor that goes along */

/* Sends with as many descriptors as asked for, more than any frame has, too. */
static void show(int fd, const uint8_t *nonce, unsigned fds)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * 253)];
    } control;
    struct msg_claim m = {.nonce = bytes_of(nonce, PROTO_NONCE_BYTES)};
    struct capbuf out;
    capbuf_init(&out, 256);
    ck_assert_int_eq(proto_encode(&schema_msg_claim, &m, &out, NULL), 0);
    struct iovec iov = {.iov_base = out.data, .iov_len = out.size};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (fds > 0) {
        memset(&control, 0, sizeof control);
        msg.msg_control = control.space;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * fds);
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * fds);
        for (unsigned i = 0; i < fds; i++) {
            memcpy(CMSG_DATA(c) + i * sizeof sent, &sent, sizeof sent);
        }
    }
    ck_assert_int_eq(sendmsg(fd, &msg, MSG_NOSIGNAL), (ssize_t)out.size);
    capbuf_finish(&out);
}

/* The answer's code, 1 if the other side closed without one. */
static int told(int fd, struct frame_fds *fds)
{
    uint8_t frame[4096];
    size_t size = 0;
    struct err e = ERR_INIT;
    turn();
    int rc = seqpacket_recv(fd, frame, sizeof frame, &size, fds, &e);
    if (rc == SEQPACKET_EOF) {
        return 1;
    }
    ck_assert_msg(rc == 0, "%d %s", rc, e.text);
    struct bytes view = bytes_of(frame, size);
    if (proto_kind(view) == MSG_KIND_ERROR) {
        struct msg_error m;
        ck_assert_int_eq(proto_decode(&schema_msg_error, view, &m, &e), 0);
        return (int)m.code;
    }
    struct msg_granted m;
    ck_assert_int_eq(proto_decode(&schema_msg_granted, view, &m, &e), 0);
    ck_assert_uint_eq(m.fds, fds != NULL ? (uint64_t)fds->count : 0);
    return 0;
}

/* Shows a nonce on a connection of its own; the code. */
static int try_claim(const uint8_t *nonce, unsigned fds)
{
    int fd = dial();
    show(fd, nonce, fds);
    int code = told(fd, NULL);
    (void)close(fd);
    turn();
    return code;
}

START_TEST(a_ticket_brings_descriptors_once)
{
    uint8_t nonce[PROTO_NONCE_BYTES];
    struct frame_fds fds = {.count = 0};
    grants[0] = STDERR_FILENO;
    grants[1] = STDERR_FILENO;
    grant_count = 2;
    offer(0, getuid(), nonce);
    int fd = dial();
    show(fd, nonce, 0);
    ck_assert_int_eq(told(fd, &fds), 0);
    ck_assert_int_eq(fds.count, 2);
    ck_assert_int_eq(fcntl(fds.fd[0], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    frame_fds_close(&fds);
    ck_assert_int_eq(fcntl(STDERR_FILENO, F_GETFD), 0); /* it stayed its owner's */
    (void)close(fd);
    ck_assert_int_eq(try_claim(nonce, 0), ERR_NOT_FOUND);
    ck_assert_uint_eq(claims, 1);
    ck_assert_uint_eq(gones, 0);
    ck_assert_uint_eq(stats().connections, 0);
    ck_assert_uint_eq(stats().granted, 1);
    ck_assert_uint_eq(stats().refused, 1);
}
END_TEST

START_TEST(a_descriptor_is_taken_in)
{
    uint8_t nonce[PROTO_NONCE_BYTES];
    keep = true;
    offer(1, getuid(), nonce);
    ck_assert_int_eq(try_claim(nonce, 1), 0);
    ck_assert_int_eq(fcntl(kept, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    (void)close(kept);
    keep = false; /* what is not kept is closed: the teardown counts */
    offer(1, getuid(), nonce);
    ck_assert_int_eq(try_claim(nonce, 1), 0);
}
END_TEST

START_TEST(what_does_not_fit_uses_the_ticket_up)
{
    uint8_t nonce[PROTO_NONCE_BYTES];
    static const unsigned come[] = {0, 2, 8};
    for (size_t i = 0; i < sizeof come / sizeof come[0]; i++) {
        offer(1, getuid(), nonce);
        ck_assert_int_eq(try_claim(nonce, come[i]), ERR_PROTOCOL);
        ck_assert_int_eq(try_claim(nonce, 1), ERR_NOT_FOUND);
    }
    offer(0, getuid() + 1, nonce);
    ck_assert_int_eq(try_claim(nonce, 0), ERR_PERMISSION);
    ck_assert_int_eq(try_claim(nonce, 0), ERR_NOT_FOUND);
    claim_error = ERR_INVALID;
    offer(0, getuid(), nonce);
    ck_assert_int_eq(try_claim(nonce, 0), ERR_INVALID);
    ck_assert_uint_eq(claims, 1);
    ck_assert_uint_eq(gones, 4);
    ck_assert_uint_eq(stats().tickets, 0);
}
END_TEST

START_TEST(a_flood_of_descriptors_is_refused_and_closed)
{
    uint8_t nonce[PROTO_NONCE_BYTES];
    offer(1, getuid(), nonce);
    for (unsigned n = 9; n <= 253; n += 61) {
        ck_assert_int_eq(try_claim(nonce, n), ERR_PROTOCOL);
    }
    ck_assert_int_eq(try_claim(nonce, 253), ERR_PROTOCOL);
    ck_assert_int_eq(try_claim(nonce, 1), 0); /* nobody had read the nonce */
}
END_TEST

START_TEST(rubbish_is_refused)
{
    static const uint8_t nonce[PROTO_NONCE_BYTES] = {1};
    ck_assert_int_eq(try_claim(nonce, 0), ERR_NOT_FOUND);
    uint8_t big[1024] = {0x93, 24};
    int fd = dial();
    ck_assert_int_eq(send(fd, big, sizeof big, MSG_NOSIGNAL), sizeof big);
    ck_assert_int_eq(told(fd, NULL), ERR_PROTOCOL);
    (void)close(fd);
    fd = dial();
    ck_assert_int_eq(send(fd, "hello", 5, MSG_NOSIGNAL), 5);
    ck_assert_int_eq(told(fd, NULL), ERR_PROTOCOL);
    ck_assert_int_eq(send(fd, "hello", 5, MSG_NOSIGNAL), 5); /* one message each */
    ck_assert_int_eq(told(fd, NULL), 1);
    (void)close(fd);
    fd = dial();
    uint8_t shorter[] = {0x94, 24, 0, 0, 0xc4, 1, 7};
    ck_assert_int_eq(send(fd, shorter, sizeof shorter, MSG_NOSIGNAL), sizeof shorter);
    ck_assert_int_eq(told(fd, NULL), ERR_NOT_FOUND);
    (void)close(fd);
    turn();
}
END_TEST

static void turn_for(uint64_t ns)
{
    uint64_t until = clock_now_ns() + ns;
    while (clock_now_ns() < until) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        (void)poll(NULL, 0, 5);
    }
    turn(); /* what was due by then is done */
}

START_TEST(who_does_not_show_up_loses)
{
    uint8_t nonce[PROTO_NONCE_BYTES];
    offer(0, getuid(), nonce);
    int fd = dial();
    turn();
    ck_assert_uint_eq(stats().connections, 1);
    turn_for(options.ticket_ns + 100 * NS_PER_MS);
    ck_assert_uint_eq(gones, 1);
    ck_assert_uint_eq(stats().connections, 0);
    ck_assert_uint_eq(stats().silent, 1);
    ck_assert_int_eq(told(fd, NULL), 1);
    (void)close(fd);
    ck_assert_int_eq(try_claim(nonce, 0), ERR_NOT_FOUND);
}
END_TEST

START_TEST(what_was_withdrawn_is_not_found)
{
    uint8_t nonce[PROTO_NONCE_BYTES];
    offer(0, getuid(), nonce);
    shm_withdraw(shm, &claims);
    ck_assert_uint_eq(stats().tickets, 1);
    shm_withdraw(shm, &loop);
    ck_assert_int_eq(try_claim(nonce, 0), ERR_NOT_FOUND);
    ck_assert_uint_eq(claims + gones, 0);
}
END_TEST

START_TEST(one_user_has_few_connections_and_tickets)
{
    int fd[64];
    uint8_t nonce[PROTO_NONCE_BYTES];
    for (unsigned i = 0; i < options.uid_max + 4; i++) {
        fd[i] = dial();
        turn();
    }
    ck_assert_uint_eq(stats().connections, options.uid_max);
    ck_assert_uint_eq(stats().crowded, 4);
    for (unsigned i = 0; i < options.uid_max + 4; i++) {
        (void)close(fd[i]);
    }
    turn_until_closed();
    for (unsigned i = 0; i < options.tickets_max / 4; i++) {
        offer(0, getuid(), nonce);
    }
    struct err e = ERR_INIT;
    struct ticket t = {.uid = getuid(), .claim = on_claim, .data = &loop};
    ck_assert_int_eq(shm_offer(shm, &t, nonce, &e), ERR_BUSY);
    t.uid++;
    ck_assert_int_eq(shm_offer(shm, &t, nonce, &e), 0);
}
END_TEST

/* FAULT other: a link is where the socket of a tenant was, in a folder that others may write
 * required: the file that it leads to keeps its permissions
 * defence: `front/settings/listener_url.c`: listen_permit
 * mutants: socket-link */
START_TEST(permissions_are_for_sockets_alone)
{
    struct err e = ERR_INIT;
    struct stat st;
    char target[SCRATCH_PATH + 32];
    char link[SCRATCH_PATH + 32];
    (void)snprintf(target, sizeof target, "%s/shm.sock", dir);
    (void)snprintf(link, sizeof link, "%s/link", dir);
    ck_assert_int_eq(symlink(target, link), 0);
    ck_assert_int_eq(listen_permit(link, 0666, UINT32_MAX, &e), ERR_EXISTS);
    ck_assert_int_eq(stat(target, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0660);
    ck_assert_int_eq(listen_permit(target, 0666, UINT32_MAX, &e), 0);
    ck_assert_int_eq(stat(target, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0666);
    (void)unlink(link);
}
END_TEST

/* FAULT other: a nonce for descriptors is shown at the socket of another tenant, by an equal uid
 * required: it is refused, and used up
 * defence: `front/clients/shm.c`: claim
 * mutants: socket-ticket */
START_TEST(each_socket_has_its_own_tickets_and_limits)
{
    struct err e = ERR_INIT;
    struct stat st;
    char path[SCRATCH_PATH + 32];
    int fd[64];
    uint8_t nonce[PROTO_NONCE_BYTES];
    (void)snprintf(path, sizeof path, "%s/tenant.shm", dir);
    ck_assert_int_eq(shm_listen(shm, 7, path, 0666, UINT32_MAX, &e), 0);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0666);
    ck_assert_str_eq(shm_path(shm, 7), path);
    ck_assert_str_eq(shm_path(shm, 8), "");
    for (unsigned i = 0; i < options.uid_max + 1; i++) {
        ck_assert_int_eq(seqpacket_connect(path, &fd[i], &e), 0);
        turn();
    }
    ck_assert_uint_eq(stats().crowded, 1);
    offer(0, getuid(), nonce);
    struct ticket t = {
        .uid = getuid(), .listener = 7, .claim = on_claim, .expired = on_gone, .data = &loop};
    uint8_t own[PROTO_NONCE_BYTES];
    ck_assert_int_eq(shm_offer(shm, &t, own, &e), 0);
    show(fd[0], own, 0);
    turn();
    ck_assert_int_eq(told(fd[0], NULL), 0);
    show(fd[1], nonce, 0); /* that of the other socket */
    turn();
    ck_assert_int_eq(told(fd[1], NULL), ERR_PERMISSION);
    ck_assert_uint_eq(gones, 1);
    offer(0, getuid(), nonce); /* the connections of the other socket do not count here */
    ck_assert_int_eq(try_claim(nonce, 0), 0);
    shm_unlisten(shm, 7);
    ck_assert_int_ne(stat(path, &st), 0);
    ck_assert_str_eq(shm_path(shm, 7), "");
    for (unsigned i = 0; i < options.uid_max + 1; i++) {
        (void)close(fd[i]);
    }
    turn_until_closed();
}
END_TEST

/* It counts as long as what was sent to it may be unread. */
START_TEST(a_connection_stays_until_its_client_closes_it)
{
    uint8_t nonce[PROTO_NONCE_BYTES];
    offer(0, getuid(), nonce);
    int fd = dial();
    show(fd, nonce, 0);
    turn_for(options.claim_ns + 100 * NS_PER_MS);
    ck_assert_uint_eq(stats().granted, 1);
    ck_assert_uint_eq(stats().connections, 1);
    (void)close(fd);
    turn();
    ck_assert_uint_eq(stats().connections, 0);
}
END_TEST

START_TEST(a_second_daemon_is_refused_and_a_stale_socket_taken)
{
    struct err e = ERR_INIT;
    struct shm *other = NULL;
    char path[SCRATCH_PATH + 32];
    struct stat st;
    (void)snprintf(path, sizeof path, "%s/shm.sock", dir);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0660);
    ck_assert_int_eq(shm_create(&loop, path, &options, &other, &e), ERR_EXISTS);
    (void)snprintf(path, sizeof path, "%s/stale.sock", dir);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    (void)close(fd);
    ck_assert_int_eq(shm_create(&loop, path, &options, &other, &e), 0);
    shm_destroy(other);
    (void)snprintf(path, sizeof path, "%s/file", dir);
    scratch_write(path, "x", 1);
    ck_assert_int_eq(shm_create(&loop, path, &options, &other, &e), ERR_EXISTS);
    char deep[200];
    memset(deep, 'x', sizeof deep);
    deep[sizeof deep - 1] = '\0';
    ck_assert_int_eq(shm_create(&loop, deep, &options, &other, &e), ERR_INVALID);
}
END_TEST

/* The loop must not spin when nobody more can be let in. */
START_TEST(without_descriptors_it_waits)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    struct rlimit low = limit;
    int fd = dial();
    low.rlim_cur = (rlim_t)fd + 1;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
    turn();
    ck_assert_uint_eq(stats().connections, 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    uint64_t until = clock_now_ns() + 30 * NS_PER_S;
    while (stats().connections == 0 && clock_now_ns() < until) {
        turn_for(NS_PER_MS);
    }
    ck_assert_uint_eq(stats().connections, 1);
    (void)close(fd);
    turn();
}
END_TEST

/* ---- descriptors whose last close takes an hour ---------------------------------------------- */

static void turn_until_served(const uint8_t *nonce, int code)
{
    struct frame_fds fds = {.count = 0};
    uint8_t frame[4096];
    size_t size = 0;
    struct err e = ERR_INIT;
    int rc = SEQPACKET_AGAIN;
    int fd = dial();
    show(fd, nonce, 0);
    while (rc == SEQPACKET_AGAIN) {
        turn_once();
        rc = seqpacket_recv(fd, frame, sizeof frame, &size, &fds, &e);
    }
    ck_assert_int_eq(rc, 0);
    ck_assert((proto_kind(bytes_of(frame, size)) == MSG_KIND_ERROR) == (code != 0));
    (void)close(fd);
}

/* _i: refused; more than a frame has; unread; sent by one too many; sent to one that ends. */
START_TEST(a_descriptor_that_lasts_stops_nobody)
{
    uint8_t nonce[PROTO_NONCE_BYTES];
    static const uint8_t wrong[PROTO_NONCE_BYTES] = {1};
    int reader = -1;
    int fd[64];
    unsigned others = _i == 3 ? options.uid_max - 1 : 0;
    int bad = lasting(&reader);
    for (unsigned i = 0; i <= others; i++) {
        fd[i] = dial();
    }
    turn();
    int from = others > 0 ? dial() : fd[0];
    if (_i == 2) { /* what comes second is not read */
        show(from, wrong, 0);
        turn();
    }
    sent = bad;
    show(from, wrong, _i == 1 ? 12 : 1);
    sent = STDERR_FILENO;
    (void)close(bad);
    if (_i == 4) {
        (void)close(from);
    }
    for (unsigned i = 0; i < 10; i++) {
        turn_once();
        (void)poll(NULL, 0, 1);
    }
    for (unsigned i = 0; i < others; i++) {
        (void)close(fd[i]);
    }
    offer(0, getuid(), nonce);
    for (unsigned i = 0; i < 100 && stats().connections > 1; i++) {
        turn_once();
        (void)poll(NULL, 0, 1);
    }
    turn_until_served(nonce, 0);
    (void)close(reader); /* with all that was not read: a reset */
    if (_i != 4) {
        (void)close(from);
    }
    if (others > 0) {
        (void)close(fd[others]);
    }
    turn_until_closed();
}
END_TEST

/* So many of one user that more are not let in as long as they are being closed. */
START_TEST(crowded_ones_that_last_stop_nobody)
{
    enum { COUNT = 6 };
    static const uint8_t wrong[PROTO_NONCE_BYTES] = {1};
    uint8_t nonce[PROTO_NONCE_BYTES];
    int reader[COUNT];
    struct err e = ERR_INIT;
    if (close_range(UINT_MAX, UINT_MAX, 0) != 0) {
        return; /* the system cannot do it */
    }
    shm_destroy(shm);
    options.uid_max = 1;
    options.connections_max = 2;
    ck_assert_int_eq(shm_create(&loop, scratch_path(dir, "shm.sock"), &options, &shm, &e), 0);
    int first = dial();
    turn();
    ck_assert_uint_eq(stats().connections, 1);
    for (unsigned i = 0; i < COUNT; i++) {
        int bad = lasting(&reader[i]);
        int fd = dial();
        sent = bad;
        show(fd, wrong, 1);
        sent = STDERR_FILENO;
        (void)close(bad);
        (void)close(fd);
    }
    while (stats().crowded < COUNT) {
        turn_once();
    }
    (void)close(first);
    turn_until_closed();
    offer(0, getuid(), nonce);
    turn_until_served(nonce, 0);
    for (unsigned i = 0; i < COUNT; i++) {
        (void)close(reader[i]);
    }
}
END_TEST

/* ---- libgpud's side -------------------------------------------------------------------------- */

struct caller {
    const char *path;
    const uint8_t *nonce;
    int want;
    uint64_t wait_ns;
    struct frame_fds fds;
    struct err e;
    int rc;
    atomic_bool done;
};

static void *call(void *data)
{
    struct caller *c = data;
    c->e = ERR_INIT;
    c->rc = shm_claim(c->path, bytes_of(c->nonce, PROTO_NONCE_BYTES), NULL, c->want,
                      clock_now_ns() + c->wait_ns, &c->fds, &c->e);
    atomic_store(&c->done, true);
    return NULL;
}

static int run(struct caller *c)
{
    pthread_t thread;
    atomic_store(&c->done, false);
    ck_assert_int_eq(pthread_create(&thread, NULL, call, c), 0);
    while (!atomic_load(&c->done)) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        (void)poll(NULL, 0, 1);
    }
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    turn();
    return c->rc;
}

START_TEST(the_library_claims)
{
    uint8_t nonce[PROTO_NONCE_BYTES];
    struct caller c = {
        .path = shm_path(shm, 0), .nonce = nonce, .want = 1, .wait_ns = 10 * NS_PER_S};
    grants[0] = STDERR_FILENO;
    grant_count = 1;
    offer(0, getuid(), nonce);
    ck_assert_msg(run(&c) == 0, "%s", c.e.text);
    ck_assert_int_eq(c.fds.count, 1);
    frame_fds_close(&c.fds);
    ck_assert_int_eq(run(&c), ERR_NOT_FOUND);
    grant_count = 0;
    offer(0, getuid(), nonce);
    ck_assert_int_eq(run(&c), ERR_PROTOCOL); /* one was promised */
    ck_assert_uint_eq(stats().connections, 0);
    c.path = "";
    ck_assert_int_eq(run(&c), ERR_UNSUPPORTED);
    c.path = "/nowhere/shm.sock";
    ck_assert_int_eq(run(&c), ERR_UNSUPPORTED);
}
END_TEST

/* As many connections as one user may have are there: it is taken when one of them goes. */
START_TEST(the_library_waits_for_its_place)
{
    uint8_t nonce[PROTO_NONCE_BYTES];
    struct caller c = {.path = shm_path(shm, 0), .nonce = nonce, .wait_ns = 60 * NS_PER_S};
    pthread_t thread;
    int fd[64];
    ck_assert_uint_le(options.uid_max, 64);
    for (unsigned i = 0; i < options.uid_max; i++) {
        fd[i] = dial();
    }
    offer(0, getuid(), nonce);
    turn();
    ck_assert_uint_eq(stats().connections, options.uid_max);
    ck_assert_int_eq(pthread_create(&thread, NULL, call, &c), 0);
    while (stats().crowded < 2) {
        ck_assert(!atomic_load(&c.done));
        turn();
        (void)poll(NULL, 0, 1);
    }
    (void)close(fd[0]);
    while (!atomic_load(&c.done)) {
        turn();
        (void)poll(NULL, 0, 1);
    }
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_msg(c.rc == 0, "%s", c.e.text);
    ck_assert_uint_eq(claims, 1);
    for (unsigned i = 1; i < options.uid_max; i++) {
        (void)close(fd[i]);
    }
    turn();
}
END_TEST

START_TEST(the_library_does_not_wait_for_ever)
{
    static const uint8_t nonce[PROTO_NONCE_BYTES];
    struct frame_fds fds;
    struct err e = ERR_INIT;
    uint64_t deadline = clock_now_ns() + 50 * NS_PER_MS;
    ck_assert_int_eq(
        shm_claim(shm_path(shm, 0), bytes_of(nonce, sizeof nonce), NULL, 0, deadline, &fds, &e),
        ERR_TIMEOUT); /* nobody turns the loop */
    ck_assert_uint_ge(clock_now_ns(), deadline);
    turn();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_ticket_brings_descriptors_once,
        a_descriptor_is_taken_in,
        what_does_not_fit_uses_the_ticket_up,
        a_flood_of_descriptors_is_refused_and_closed,
        rubbish_is_refused,
        what_was_withdrawn_is_not_found,
        each_socket_has_its_own_tickets_and_limits,
        permissions_are_for_sockets_alone,
        one_user_has_few_connections_and_tickets,
        a_second_daemon_is_refused_and_a_stale_socket_taken,
        without_descriptors_it_waits,
        crowded_ones_that_last_stop_nobody,
        the_library_claims,
        the_library_waits_for_its_place,
        the_library_does_not_wait_for_ever,
    };
    Suite *suite = suite_create("shm");
    TCase *tcase = tcase_create("tickets");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        tcase_add_test(tcase, tests[i]);
    }
    tcase_add_loop_test(tcase, a_descriptor_that_lasts_stops_nobody, 0, 5);
    suite_add_tcase(suite, tcase);
    TCase *brief = tcase_create("time");
    tcase_set_timeout(brief, 60);
    tcase_add_checked_fixture(brief, setup_brief, teardown);
    tcase_add_test(brief, who_does_not_show_up_loses);
    tcase_add_test(brief, a_connection_stays_until_its_client_closes_it);
    suite_add_tcase(suite, brief);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
