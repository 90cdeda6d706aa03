#include "daemon/loop/bell.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>

struct bell {
    uv_poll_t poll;
    int fd; /* not owned */
    bool by_edge;
    void (*rung)(void *data);
    void *data;
};

/* libuv watches levels. It has the descriptor in its set by the time of the first call, and leaves
 * it as it is from then on: so it is changed there. */
static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct bell *b = poll->data;
    (void)events;
    if (!b->by_edge) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.fd = b->fd};
        b->by_edge = epoll_ctl(uv_backend_fd(poll->loop), EPOLL_CTL_MOD, b->fd, &event) == 0;
    }
    if (status == 0) {
        b->rung(b->data);
    }
}

int bell_create(uv_loop_t *loop, int fd, void (*rung)(void *data), void *data,
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
    b->rung = rung;
    b->data = data;
    b->poll.data = b;
    (void)uv_poll_start(&b->poll, UV_READABLE, on_poll);
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
