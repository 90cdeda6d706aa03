#include "common/seqpacket.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

int seqpacket_pair(int ret_fd[2], struct err *e)
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ret_fd) != 0) {
        return err_errno(e, ERR_IO, "socketpair");
    }
    return 0;
}

static int address(const char *path, struct sockaddr_un *ret_addr, struct err *e)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof addr.sun_path) {
        return err_set(e, ERR_INVALID, "%s: longer than %zu bytes", path, sizeof addr.sun_path - 1);
    }
    (void)snprintf(addr.sun_path, sizeof addr.sun_path, "%s", path);
    *ret_addr = addr;
    return 0;
}

static int open_socket(const char *path, struct sockaddr_un *ret_addr, int *ret_fd, struct err *e)
{
    int rc = address(path, ret_addr, e);
    if (rc != 0) {
        return rc;
    }
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return err_errno(e, ERR_IO, "socket");
    }
    *ret_fd = fd;
    return 0;
}

int seqpacket_listen(const char *path, int *ret_fd, struct err *e)
{
    struct sockaddr_un addr;
    int fd = -1;
    int rc = open_socket(path, &addr, &fd, e);
    if (rc != 0) {
        return rc;
    }
    /* The file gets the socket's mode. The umask is not used: it belongs to the whole process. */
    bool bound = fchmod(fd, 0600) == 0 && bind(fd, (struct sockaddr *)&addr, sizeof addr) == 0;
    if (!bound || listen(fd, SOMAXCONN) != 0) {
        rc = err_errno(e, ERR_IO, "listening on %s", path);
        (void)close(fd);
        return rc;
    }
    *ret_fd = fd;
    return 0;
}

bool seqpacket_peer_trusted(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

int seqpacket_connect(const char *path, int *ret_fd, struct err *e)
{
    struct sockaddr_un addr;
    int fd = -1;
    int rc = open_socket(path, &addr, &fd, e);
    if (rc != 0) {
        return rc;
    }
    if (connect(fd, (struct sockaddr *)&addr, sizeof addr) != 0) {
        rc = err_errno(e, ERR_CONNECT, "connecting to %s", path);
        (void)close(fd);
        return rc;
    }
    *ret_fd = fd;
    return 0;
}

int seqpacket_send(int fd, const void *data, size_t size, const struct frame_fds *fds,
                   struct err *e)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * FRAME_MAX_FDS)];
    } control;
    if (size == 0 || size > FRAME_MAX_BYTES ||
        (fds != NULL && (fds->count < 0 || fds->count > FRAME_MAX_FDS))) {
        return err_set(e, ERR_INVALID, "a frame of %zu bytes with %d descriptors", size,
                       fds != NULL ? fds->count : 0);
    }
    struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (fds != NULL && fds->count > 0) {
        memset(&control, 0, sizeof control);
        size_t length = sizeof(int) * (size_t)fds->count;
        msg.msg_control = control.space;
        msg.msg_controllen = CMSG_SPACE(length);
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(length);
        memcpy(CMSG_DATA(c), fds->fd, length);
    }
    ssize_t n;
    do {
        n = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n >= 0) {
        return 0;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) {
        return SEQPACKET_AGAIN;
    }
    return err_errno(e, ERR_IO, "sending a frame of %zu bytes", size);
}

/* Collects the descriptors of a message; those that do not fit are closed at once. */
static bool take_fds(struct msghdr *msg, struct frame_fds *ret_fds)
{
    bool fits = (msg->msg_flags & MSG_CTRUNC) == 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (ret_fds->count < FRAME_MAX_FDS) {
                ret_fds->fd[ret_fds->count++] = fd;
            } else {
                (void)close(fd);
                fits = false;
            }
        }
    }
    return fits;
}

/* Closes the descriptors that came. With fewer than a frame may have, the rest found no place. */
static int too_much(const struct msghdr *msg, struct frame_fds *fds, struct err *e)
{
    bool full = fds->count == FRAME_MAX_FDS;
    frame_fds_close(fds);
    if ((msg->msg_flags & MSG_TRUNC) == 0 && !full) {
        return err_set(e, ERR_BUSY, "no descriptor is free here (limit of open files)");
    }
    return err_set(e, ERR_PROTOCOL,
                   "a frame is longer than %zu bytes or brings over %d descriptors",
                   msg->msg_iov->iov_len, FRAME_MAX_FDS);
}

static int recv_frame(int fd, struct iovec iov, bool lossy, size_t *ret_size,
                      struct frame_fds *ret_fds, struct err *e)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * FRAME_MAX_FDS)];
    } control;
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.space,
                         .msg_controllen = sizeof control.space};
    ssize_t n;
    do {
        /* ECONNRESET: the peer left frames unread; reported once, before the frames that it sent */
        n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (n < 0 && (errno == EINTR || errno == ECONNRESET));
    if (n < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return SEQPACKET_AGAIN;
        }
        return err_errno(e, ERR_IO, "receiving a frame");
    }
    struct frame_fds fds = {.count = 0};
    bool fits = take_fds(&msg, &fds);
    if (n == 0 && fds.count == 0) {
        return SEQPACKET_EOF; /* frames are never empty */
    }
    if (!fits && lossy) {
        frame_fds_close(&fds);
        fds.lost = fits = true;
    }
    if (!fits || (msg.msg_flags & MSG_TRUNC) != 0) {
        return too_much(&msg, &fds, e);
    }
    *ret_size = (size_t)n;
    if (ret_fds != NULL) {
        *ret_fds = fds;
    } else {
        frame_fds_close(&fds);
    }
    return 0;
}

int seqpacket_recv(int fd, void *data, size_t size, size_t *ret_size, struct frame_fds *ret_fds,
                   struct err *e)
{
    struct iovec iov = {.iov_base = data, .iov_len = size};
    return recv_frame(fd, iov, false, ret_size, ret_fds, e);
}

int seqpacket_recv_lossy(int fd, void *data, size_t size, size_t *ret_size,
                         struct frame_fds *ret_fds, struct err *e)
{
    struct iovec iov = {.iov_base = data, .iov_len = size};
    return recv_frame(fd, iov, true, ret_size, ret_fds, e);
}

void frame_fds_close(struct frame_fds *fds)
{
    for (int i = 0; i < fds->count; i++) {
        if (fds->fd[i] >= 0) {
            (void)close(fds->fd[i]);
        }
    }
    fds->count = 0;
}
