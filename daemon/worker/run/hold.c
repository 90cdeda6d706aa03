#include "daemon/worker/run/hold.h"

#include <errno.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"

#define HOLD_JOBS 64u /* of so many, no more are waited for */

bool hold_rule_wants(struct hold_rule *r, bool busy)
{
    if (r->window_ns == 0 || !busy) {
        return false;
    }
    if (r->left > 0 && r->due_ns == 0) {
        r->left--;
        return false;
    }
    return true;
}

bool hold_rule_keeps(struct hold_rule *r, unsigned jobs, bool busy, uint64_t now_ns)
{
    if (r->window_ns == 0 || !busy || jobs == 0 || jobs >= HOLD_JOBS) {
        return false;
    }
    if (r->due_ns == 0) {
        r->due_ns = now_ns + r->window_ns;
    }
    return now_ns < r->due_ns;
}

bool hold_rule_hurries(const struct hold_rule *r, uint64_t deadline_ns, uint64_t now_ns)
{
    return r->window_ns > 0 && deadline_ns < now_ns + r->window_ns;
}

void hold_rule_end(struct hold_rule *r, unsigned jobs, uint64_t now_ns)
{
    if (r->due_ns == 0) {
        return;
    }
    bool in_vain = jobs <= 1 && now_ns >= r->due_ns;
    if (in_vain) {
        r->skip = 2 * r->skip + 1 < HOLD_SKIP_MAX ? 2 * r->skip + 1 : HOLD_SKIP_MAX;
    } else if (jobs > 1) {
        r->skip = 0;
    }
    r->left = in_vain ? r->skip : 0;
    r->due_ns = 0;
}

/* ---- with a timer --------------------------------------------------------------------------- */

static void arm(struct hold *h)
{
    const struct itimerspec at = {.it_value = {.tv_sec = (time_t)(h->rule.due_ns / NS_PER_S),
                                               .tv_nsec = (long)(h->rule.due_ns % NS_PER_S)}};
    h->armed = timerfd_settime(h->fd, TFD_TIMER_ABSTIME, &at, NULL) == 0;
    if (!h->armed) { /* nobody would start them */
        h->rule.due_ns = 0;
    }
}

static void on_timer(uv_poll_t *poll, int status, int events)
{
    struct hold *h = poll->data;
    uint64_t count;
    (void)status;
    (void)events;
    (void)!read(h->fd, &count, sizeof count);
    h->armed = false;
    if (h->rule.due_ns == 0) {
        return;
    }
    if (clock_now_ns() < h->rule.due_ns) {
        arm(h);
    }
    if (!h->armed) {
        h->start(h->data);
    }
}

void hold_init(struct hold *h, uv_loop_t *loop, void (*start)(void *data), void *data)
{
    *h = (struct hold){.start = start, .data = data};
    h->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (h->fd < 0) {
        log_warn("no timer, so brief jobs do not wait for others: %s", strerror(errno));
        return;
    }
    if (uv_poll_init(loop, &h->poll, h->fd) != 0) {
        (void)close(h->fd);
        h->fd = -1;
        log_warn("no timer, so brief jobs do not wait for others");
        return;
    }
    h->poll.data = h;
    (void)uv_poll_start(&h->poll, UV_READABLE, on_timer);
}

void hold_finish(struct hold *h)
{
    if (h->fd >= 0) {
        uv_close((uv_handle_t *)&h->poll, NULL);
        (void)close(h->fd);
        h->fd = -1;
    }
}

void hold_set(struct hold *h, uint64_t window_ns)
{
    uint64_t most = window_ns < HOLD_WINDOW_NS ? window_ns : HOLD_WINDOW_NS;
    h->rule.window_ns = h->fd >= 0 ? most : 0;
    h->armed = false; /* if it still runs, then for the window that was */
}

bool hold_keeps(struct hold *h, unsigned jobs, bool busy)
{
    bool keeps = hold_rule_keeps(&h->rule, jobs, busy, clock_now_ns());
    if (keeps && !h->armed) {
        arm(h);
    }
    return keeps && h->armed;
}

void hold_end(struct hold *h, unsigned jobs)
{
    if (h->rule.due_ns != 0) {
        hold_rule_end(&h->rule, jobs, clock_now_ns());
    }
}
