#include "common/doorbell.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/descriptors.h"

#define RINGS_LEFT (UINT64_C(1) << 63)

static ssize_t take_one(int fd)
{
    uint64_t one;
    struct iovec to = {.iov_base = &one, .iov_len = sizeof one};
    ssize_t n;
    do {
        n = preadv2(fd, &to, 1, -1, RWF_NOWAIT);
    } while (n < 0 && errno == EINTR);
    return n;
}

int doorbell_create(int *ret_fd, struct err *e)
{
    const uint64_t count = RINGS_LEFT;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
    if (fd < 0 || write(fd, &count, sizeof count) < 0 || take_one(fd) < 0) {
        int rc = err_errno(e, ERR_IO, "making a doorbell");
        descriptor_close(&fd);
        return rc;
    }
    *ret_fd = fd;
    return 0;
}

void doorbell_ring(int fd)
{
    (void)take_one(fd);
}

int doorbell_listen(int fd)
{
    struct epoll_event event = {.events = EPOLLOUT | EPOLLET};
    int set = epoll_create1(EPOLL_CLOEXEC);
    if (set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) != 0) {
        descriptor_close(&set);
    }
    return set;
}

bool doorbell_wait(int set, int timeout_ms)
{
    struct epoll_event event;
    return epoll_wait(set, &event, 1, timeout_ms) == 1;
}
