/* `gpuctl top`: devices, tenants, sessions, jobs and the pool on one screen, again and again. */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "common/clock.h"
#include "gpuctl/ctl/interrupt.h"
#include "gpuctl/top/draw.h"

#define INTERVAL_NS (2 * NS_PER_S)
#define SLICE_MS    200u /* a signal may come just before the wait begins */

/* Waits for a key, a signal, or the time of the next question; false: the terminal has gone. */
static bool await_key(uint64_t next_ns)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    uint64_t now = clock_now_ns();
    uint64_t left = next_ns > now ? (next_ns - now) / NS_PER_MS + 1 : 0;
    int n = poll(&in, 1, (int)(left < SLICE_MS ? left : SLICE_MS));
    return n >= 0 ? (in.revents & (POLLHUP | POLLERR | POLLNVAL)) == 0 : errno == EINTR;
}

static void run(struct top *top, uint64_t interval_ns)
{
    uint64_t next = clock_now_ns() + interval_ns;
    while (!top->over && !interrupt_seen()) {
        int key;
        draw_all(top);
        if (!await_key(next)) {
            return;
        }
        /* a key for another table waits until its rows are there */
        while (!top->stale && !top->over && (key = draw_key()) >= 0) {
            top_key(top, key);
        }
        if (!top->over && (top->stale || (!top->paused && clock_now_ns() >= next))) {
            top_ask(top);
            next = clock_now_ns() + interval_ns;
        }
    }
}

int cmd_top(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    struct top top;
    int rc = ctl_words(ctl, options, 0, 0, NULL, e);
    if (rc == 0 && (!ctl_people(ctl) || isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1)) {
        rc = ctl_err_usage(e, "top draws on a terminal; gpuctl jobs -w 2 writes lines");
    }
    rc = rc == 0 ? ctl_connect(ctl, e) : rc;
    if (rc != 0) {
        return rc;
    }
    top_init(&top, ctl);
    interrupt_catch(); /* before ncurses, which then leaves these signals alone */
    rc = draw_begin(ctl->colour, e);
    if (rc == 0) {
        top_ask(&top);
        run(&top, ctl->watch_ns > 0 ? ctl->watch_ns : INTERVAL_NS);
        draw_end();
    }
    interrupt_release();
    top_finish(&top);
    return rc;
}
