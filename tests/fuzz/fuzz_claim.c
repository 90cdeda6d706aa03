/*
 * Input: the message of a stranger at the socket for descriptors. The first bytes say how many
 * descriptors come along, how many the ticket wants, and where in the message its nonce is written
 * (beyond the end: nowhere); then the message follows. The daemon may grant only to a message with
 * the nonce and the wanted number of descriptors, says GRANTED if and only if the ticket's owner
 * granted it, and keeps no descriptor.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/front/clients/shm.h"
#include "proto/codec.h"

#define PREFIX   3u
#define FDS_MAX  12u /* more than a frame may have */
#define MESSAGE  1024u
#define WANT_MAX 4u

#define PATIENCE_NS (10 * NS_PER_S)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
    uv_loop_t loop;
    struct shm *shm;
    unsigned want;
    bool shown; /* the message holds the nonce */
    unsigned claims;
} t;

static void must(bool good, const char *what)
{
    if (!good) {
        (void)fprintf(stderr, "%s\n", what);
        abort();
    }
}

static int on_claim(void *data, struct frame_fds *given, struct frame_fds *ret_fds, struct err *e)
{
    (void)data;
    (void)ret_fds;
    (void)e;
    must(t.shown, "a ticket was taken that nobody showed");
    must((unsigned)given->count == t.want, "not as many descriptors as were asked for");
    for (int i = 0; i < given->count; i++) {
        must(fcntl(given->fd[i], F_GETFD) >= 0, "a descriptor that is none");
    }
    t.claims++;
    return 0;
}

static void begin(void)
{
    static char dir[] = "/tmp/gpud-fuzz-XXXXXX";
    char path[64];
    struct err e = ERR_INIT;
    struct shm_options options = shm_defaults;
    options.claim_ns = options.ticket_ns = 3600 * NS_PER_S;
    must(mkdtemp(dir) != NULL && uv_loop_init(&t.loop) == 0, "no folder or loop");
    (void)snprintf(path, sizeof path, "%s/s", dir);
    must(shm_create(&t.loop, path, &options, &t.shm, &e) == 0, e.text);
}

static void finish(void)
{
    char dir[64];
    (void)snprintf(dir, sizeof dir, "%s", shm_path(t.shm, 0));
    *strrchr(dir, '/') = '\0';
    shm_destroy(t.shm);
    (void)uv_run(&t.loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&t.loop);
    (void)rmdir(dir);
}

/* Threads of its own receive and close: the loop has to turn until they have. */
static void turn_until(bool (*over)(int fd), int fd, const char *what)
{
    uint64_t until_ns = clock_now_ns() + PATIENCE_NS;
    (void)uv_run(&t.loop, UV_RUN_NOWAIT);
    while (!over(fd)) {
        must(clock_now_ns() < until_ns, what);
        (void)usleep(20);
        (void)uv_run(&t.loop, UV_RUN_NOWAIT);
    }
}

static bool answered(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static bool forgotten(int fd)
{
    struct shm_stats stats;
    (void)fd;
    shm_stats(t.shm, &stats);
    return stats.connections == 0 && stats.working == 0;
}

static void show(int fd, const uint8_t *message, size_t size, unsigned count)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * FDS_MAX)];
    } control;
    struct iovec iov = {.iov_base = (void *)(uintptr_t)message, .iov_len = size};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    memset(&control, 0, sizeof control);
    if (count > 0) {
        msg.msg_control = control.space;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * count);
        for (unsigned i = 0; i < count; i++) {
            memcpy(CMSG_DATA(c) + i * sizeof fd, &fd, sizeof fd);
        }
    }
    (void)sendmsg(fd, &msg, MSG_NOSIGNAL);
}

static bool granted(int fd)
{
    uint8_t frame[4096];
    size_t size = 0;
    struct frame_fds fds = {.count = 0};
    int rc = seqpacket_recv(fd, frame, sizeof frame, &size, &fds, NULL);
    must(fds.count == 0, "descriptors that nobody gave");
    return rc == 0 && proto_kind(bytes_of(frame, size)) == MSG_KIND_GRANTED;
}

static int lowest_free(void)
{
    int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    (void)close(fd);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t message[MESSAGE];
    uint8_t nonce[PROTO_NONCE_BYTES];
    struct err e = ERR_INIT;
    int fd = -1;
    if (size < PREFIX + 1 || size > PREFIX + MESSAGE) {
        return 0;
    }
    if (t.shm == NULL) {
        begin();
        (void)atexit(finish);
        (void)uv_run(&t.loop, UV_RUN_NOWAIT);
    }
    const struct ticket ticket = {
        .uid = getuid(), .give = t.want = data[1] % WANT_MAX, .claim = on_claim, .data = &t};
    must(shm_offer(t.shm, &ticket, nonce, &e) == 0, e.text);
    int before = lowest_free();
    unsigned claims = t.claims;
    size -= PREFIX;
    memcpy(message, data + PREFIX, size);
    t.shown = (size_t)data[2] + sizeof nonce <= size;
    if (t.shown) {
        memcpy(message + data[2], nonce, sizeof nonce);
    }
    must(seqpacket_connect(shm_path(t.shm, 0), &fd, &e) == 0, e.text);
    show(fd, message, size, data[0] % (FDS_MAX + 1));
    turn_until(answered, fd, "no answer, and no end");
    must(granted(fd) == (t.claims > claims), "the answer and the owner differ");
    (void)close(fd);
    turn_until(forgotten, -1, "the connection stays");
    shm_withdraw(t.shm, &t);
    must(lowest_free() == before, "a descriptor is left");
    return 0;
}
