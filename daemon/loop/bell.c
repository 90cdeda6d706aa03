#include "daemon/loop/bell.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>

struct bell {
    uv_poll_t poll;
    int fd;     /* not owned */
    int events; /* UV_READABLE or UV_WRITABLE */
    bool by_edge;
    void (*rung)(void *data);
    void *data;
};

/* libuv watches by level. It adds the descriptor to its epoll set before the first call and does
 * not change it later, so the first call can switch it to edges. */
static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct bell *b = poll->data;
    (void)events;
    if (!b->by_edge) {
        struct epoll_event event = {.data.fd = b->fd};
        event.events = (b->events == UV_WRITABLE ? EPOLLOUT : EPOLLIN) | EPOLLET;
        b->by_edge = epoll_ctl(uv_backend_fd(poll->loop), EPOLL_CTL_MOD, b->fd, &event) == 0;
    }
    if (status == 0) {
        b->rung(b->data);
    }
}

int bell_create(uv_loop_t *loop, int fd, int events, void (*rung)(void *data), void *data,
                struct bell **ret_bell, struct err *e)
{
    struct bell *b = calloc(1, sizeof *b);
    int rc = b != NULL ? uv_poll_init(loop, &b->poll, fd) : UV_ENOMEM;
    if (rc != 0) {
        free(b);
        return err_set(e, rc == UV_ENOMEM ? ERR_NOMEM : ERR_IO, "watching a doorbell: %s",
                       uv_strerror(rc));
    }
    b->fd = fd;
    b->events = events;
    b->rung = rung;
    b->data = data;
    b->poll.data = b;
    (void)uv_poll_start(&b->poll, b->events, on_poll);
    *ret_bell = b;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void bell_destroy(struct bell *b)
{
    if (b != NULL) {
        uv_close((uv_handle_t *)&b->poll, on_closed);
    }
}
