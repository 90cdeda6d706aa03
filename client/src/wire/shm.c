#include "client/src/wire/shm.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "proto/codec.h"

#define ANSWER_BYTES 4096u
#define CLAIM_BYTES  64u
#define RETRY_NS     (1 * NS_PER_MS) /* first pause while the daemon accepts no connection */
#define RETRY_MAX_NS (16 * NS_PER_MS)
#define CROWDED      1 /* the daemon closed the connection without an answer */

static bool is_socket(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

void shm_find(char path[PROTO_SOCKET_MAX + 1], const struct address *address)
{
    struct sockaddr_un un;
    char beside[sizeof un.sun_path + sizeof PROTO_SOCKET_SHM];
    if (path[0] == '\0' || address->transport != SP_IPC || is_socket(path)) {
        return;
    }
    memcpy(&un, &address->item[0].at, sizeof un);
    (void)snprintf(beside, sizeof beside, "%s" PROTO_SOCKET_SHM, un.sun_path);
    if (strlen(beside) <= PROTO_SOCKET_MAX && is_socket(beside)) {
        (void)snprintf(path, PROTO_SOCKET_MAX + 1, "%s", beside);
    }
}

static int late(struct err *e)
{
    return err_set(e, ERR_TIMEOUT, "the daemon's socket for shared memory does not answer");
}

/* Waits until the socket is readable; TIMEOUT at the deadline. */
static int wait_readable(int fd, uint64_t deadline_ns, struct err *e)
{
    for (;;) {
        uint64_t now = clock_now_ns();
        if (now >= deadline_ns) {
            return late(e);
        }
        uint64_t ms = (deadline_ns - now + NS_PER_MS - 1) / NS_PER_MS;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int n = poll(&p, 1, ms < 60000 ? (int)ms : 60000);
        if (n > 0) {
            return 0;
        }
        if (n < 0 && errno != EINTR) {
            return err_errno(e, ERR_IO, "waiting for shared memory");
        }
    }
}

static int refused(const char *path, int error, struct err *e)
{
    errno = error;
    if (error == ENOENT || error == ECONNREFUSED) {
        return err_errno(e, ERR_UNSUPPORTED, "no shared memory here: %s", path);
    }
    return err_errno(e, error == EACCES || error == EPERM ? ERR_PERMISSION : ERR_CONNECT,
                     "connecting to %s", path);
}

/* Connects; retries while the socket's backlog is full (EAGAIN). */
static int connect_to(int fd, const char *path, uint64_t deadline_ns, struct err *e)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const struct timespec pause = {.tv_nsec = (long)RETRY_NS};
    if ((size_t)snprintf(at.sun_path, sizeof at.sun_path, "%s", path) >= sizeof at.sun_path) {
        return err_set(e, ERR_UNSUPPORTED, "%s: too long for a socket", path);
    }
    while (connect(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        int error = errno;
        if (error != EAGAIN && error != EINTR) {
            return refused(path, error, e);
        }
        if (clock_now_ns() >= deadline_ns) {
            return late(e);
        }
        (void)nanosleep(&pause, NULL);
    }
    return 0;
}

int shm_show(int fd, struct bytes nonce, const struct frame_fds *given, struct err *e)
{
    struct msg_claim m = {.nonce = nonce};
    struct capbuf out;
    capbuf_init(&out, CLAIM_BYTES);
    int rc = proto_encode(&schema_msg_claim, &m, &out, e);
    if (rc == 0) {
        rc = seqpacket_send(fd, out.data, out.size, given, e);
    }
    capbuf_finish(&out);
    return rc > 0 ? err_set(e, ERR_BUSY, "the daemon's socket for shared memory is full") : rc;
}

static int decode_answer(struct bytes frame, int want, const struct frame_fds *fds, struct err *e)
{
    struct msg_granted granted;
    struct msg_error failed;
    if (proto_kind(frame) == MSG_KIND_ERROR) {
        int rc = proto_decode(&schema_msg_error, frame, &failed, e);
        if (rc == 0) {
            struct err refused = ERR_INIT;
            proto_error_to(&failed, &refused);
            rc = err_set(e, refused.code != 0 ? refused.code : ERR_PROTOCOL, "%s", refused.text);
        }
        return rc;
    }
    int rc = proto_decode(&schema_msg_granted, frame, &granted, e);
    if (rc == 0 && (fds->count != want || granted.fds != (uint64_t)want)) {
        rc = err_set(e, ERR_PROTOCOL, "%d descriptors for shared memory, not %d", fds->count, want);
    }
    return rc;
}

static int take_answer(int fd, int want, uint64_t deadline_ns, struct frame_fds *ret_fds,
                       struct err *e)
{
    uint8_t frame[ANSWER_BYTES];
    size_t size = 0;
    struct frame_fds fds = {.count = 0};
    int rc = SEQPACKET_AGAIN;
    while (rc == SEQPACKET_AGAIN) {
        rc = wait_readable(fd, deadline_ns, e);
        rc = rc == 0 ? seqpacket_recv(fd, frame, sizeof frame, &size, &fds, e) : rc;
    }
    if (rc == SEQPACKET_EOF) {
        return CROWDED;
    }
    rc = rc == 0 ? decode_answer(bytes_of(frame, size), want, &fds, e) : rc;
    if (rc != 0) {
        frame_fds_close(&fds);
        return rc;
    }
    *ret_fds = fds;
    return 0;
}

static bool hung_up(int fd)
{
    struct pollfd p = {.fd = fd};
    return poll(&p, 1, 0) > 0 && (p.revents & POLLHUP) != 0;
}

/* One attempt, on a new connection. CROWDED: the nonce is still valid. */
static int claim_once(const char *path, struct bytes nonce, const struct frame_fds *given, int want,
                      uint64_t deadline_ns, struct frame_fds *ret_fds, struct err *e)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return err_errno(e, ERR_IO, "socket for shared memory");
    }
    int rc = connect_to(fd, path, deadline_ns, e);
    if (rc == 0) {
        rc = shm_show(fd, nonce, given, e);
        rc = rc < 0 && hung_up(fd) ? CROWDED : rc;
    }
    rc = rc == 0 ? take_answer(fd, want, deadline_ns, ret_fds, e) : rc;
    (void)close(fd);
    return rc;
}

int shm_claim(const char *path, struct bytes nonce, const struct frame_fds *given, int want,
              uint64_t deadline_ns, struct frame_fds *ret_fds, struct err *e)
{
    if (path[0] == '\0') {
        return err_set(e, ERR_UNSUPPORTED, "the daemon shares no memory over this connection");
    }
    struct timespec pause = {.tv_nsec = (long)RETRY_NS};
    do {
        struct err failed = ERR_INIT;
        int rc = claim_once(path, nonce, given, want, deadline_ns, ret_fds, &failed);
        if (rc != CROWDED) {
            if (rc != 0 && e != NULL) {
                *e = failed;
            }
            return rc;
        }
        (void)nanosleep(&pause, NULL); /* the daemon limits the connections of one user */
        pause.tv_nsec = pause.tv_nsec < (long)RETRY_MAX_NS ? 2 * pause.tv_nsec : pause.tv_nsec;
    } while (clock_now_ns() < deadline_ns);
    return err_set(e, ERR_BUSY,
                   "the daemon closed its socket for shared memory: too many connections");
}
