#include "daemon/front/clients/processes.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UNSEEN_MS 1  /* time for an end to become visible; a wrong answer only misleads the log */
#define BATCH     64 /* ends that are reported in one turn of the loop */

#define FLAG_EXITS 0x4u /* PF_EXITING: set before the kernel closes what the process had open */

struct processes {
    int epoll; /* all pidfds */
    uv_poll_t poll;
    process_fn ended;
    void *data;
};

/* Takes one event at a time, because a report may forget the next process. */
static void on_end(uv_poll_t *poll, int status, int events)
{
    struct processes *p = poll->data;
    struct epoll_event event;
    (void)status;
    (void)events;
    for (int i = 0; i < BATCH && epoll_wait(p->epoll, &event, 1, 0) == 1; i++) {
        p->ended(p->data, event.data.ptr);
    }
}

int processes_create(uv_loop_t *loop, process_fn ended, void *data, struct processes **ret_p,
                     struct err *e)
{
    struct processes *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return err_set(e, ERR_NOMEM, "no memory to watch processes");
    }
    p->ended = ended;
    p->data = data;
    p->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (p->epoll < 0) {
        int rc = err_errno(e, ERR_IO, "watching processes");
        free(p);
        return rc;
    }
    if (uv_poll_init(loop, &p->poll, p->epoll) != 0) {
        (void)close(p->epoll);
        free(p);
        return err_set(e, ERR_IO, "watching processes");
    }
    p->poll.data = p;
    (void)uv_poll_start(&p->poll, UV_READABLE, on_end);
    *ret_p = p;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct processes *p = handle->data;
    (void)close(p->epoll);
    free(p);
}

void processes_destroy(struct processes *p)
{
    if (p != NULL) {
        uv_close((uv_handle_t *)&p->poll, on_closed);
    }
}

void processes_watch(struct processes *p, int pidfd, void *owner)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = owner};
    if (p != NULL) {
        (void)epoll_ctl(p->epoll, EPOLL_CTL_ADD, pidfd, &event);
    }
}

void processes_forget(struct processes *p, int pidfd)
{
    if (p != NULL && pidfd >= 0) {
        (void)epoll_ctl(p->epoll, EPOLL_CTL_DEL, pidfd, NULL);
    }
}

const char *process_field(const char *line, enum process_field field)
{
    const char *at = strrchr(line, ')');
    for (unsigned i = 0; at != NULL && i < (unsigned)field; i++) {
        at = strchr(at, ' ');
        at = at != NULL ? at + 1 : NULL;
    }
    return at;
}

/* For hosts whose /proc hides processes of other users. An exiting process is soon a zombie, and a
 * pidfd of a zombie is readable for every user. */
static bool ends_unseen(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    bool ends = fd < 0 || poll(&p, 1, UNSEEN_MS) == 1;
    if (fd >= 0) {
        (void)close(fd);
    }
    return ends;
}

bool process_ends(pid_t pid)
{
    char text[1024];
    (void)snprintf(text, sizeof text, "/proc/%d/stat", (int)pid);
    int fd = open(text, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd < 0) {
        return ends_unseen(pid);
    }
    (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *state = process_field(text, PROCESS_STATE);
    const char *flags = process_field(text, PROCESS_FLAGS);
    return state == NULL || flags == NULL || *state == 'Z' || *state == 'X' ||
           (strtoul(flags, NULL, 10) & FLAG_EXITS) != 0;
}
