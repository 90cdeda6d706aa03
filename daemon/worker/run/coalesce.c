#include "daemon/worker/run/coalesce.h"

#include <errno.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"

#define COALESCE_JOBS 64u /* so many jobs start at once */

bool coalesce_rule_wants(struct coalesce_rule *r, bool busy)
{
    if (r->window_ns == 0 || !busy) {
        return false;
    }
    if (r->left > 0 && r->start_ns == 0) {
        r->left--;
        return false;
    }
    return true;
}

bool coalesce_rule_keeps(struct coalesce_rule *r, unsigned jobs, bool busy, uint64_t now_ns)
{
    if (r->window_ns == 0 || !busy || jobs == 0 || jobs >= COALESCE_JOBS) {
        return false;
    }
    if (r->start_ns == 0) {
        r->start_ns = now_ns + r->window_ns;
    }
    return now_ns < r->start_ns;
}

bool coalesce_rule_hurries(const struct coalesce_rule *r, uint64_t deadline_ns, uint64_t now_ns)
{
    return r->window_ns > 0 && deadline_ns < now_ns + r->window_ns;
}

void coalesce_rule_end(struct coalesce_rule *r, unsigned jobs, uint64_t now_ns)
{
    if (r->start_ns == 0) {
        return;
    }
    bool in_vain = jobs <= 1 && now_ns >= r->start_ns;
    if (in_vain) {
        r->skip = 2 * r->skip + 1 < COALESCE_SKIP_MAX ? 2 * r->skip + 1 : COALESCE_SKIP_MAX;
    } else if (jobs > 1) {
        r->skip = 0;
    }
    r->left = in_vain ? r->skip : 0;
    r->start_ns = 0;
}

/* ---- with a timer --------------------------------------------------------------------------- */

static void arm(struct coalesce *c)
{
    const struct itimerspec at = {.it_value = {.tv_sec = (time_t)(c->rule.start_ns / NS_PER_S),
                                               .tv_nsec = (long)(c->rule.start_ns % NS_PER_S)}};
    c->armed = timerfd_settime(c->fd, TFD_TIMER_ABSTIME, &at, NULL) == 0;
    if (!c->armed) { /* without a timer the jobs would not start */
        c->rule.start_ns = 0;
    }
}

static void on_timer(uv_poll_t *poll, int status, int events)
{
    struct coalesce *c = poll->data;
    uint64_t count;
    (void)status;
    (void)events;
    (void)!read(c->fd, &count, sizeof count);
    c->armed = false;
    if (c->rule.start_ns == 0) {
        return;
    }
    if (clock_now_ns() < c->rule.start_ns) {
        arm(c);
    }
    if (!c->armed) {
        c->start(c->data);
    }
}

void coalesce_init(struct coalesce *c, uv_loop_t *loop, void (*start)(void *data), void *data)
{
    *c = (struct coalesce){.start = start, .data = data};
    c->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (c->fd < 0) {
        log_say(LOG_COALESCE_OFF, "no timer, so brief jobs are not coalesced: %s", strerror(errno));
        return;
    }
    if (uv_poll_init(loop, &c->poll, c->fd) != 0) {
        (void)close(c->fd);
        c->fd = -1;
        log_say(LOG_COALESCE_OFF, "no timer, so brief jobs are not coalesced");
        return;
    }
    c->poll.data = c;
    (void)uv_poll_start(&c->poll, UV_READABLE, on_timer);
}

void coalesce_finish(struct coalesce *c)
{
    if (c->fd >= 0) {
        uv_close((uv_handle_t *)&c->poll, NULL);
        (void)close(c->fd);
        c->fd = -1;
    }
}

void coalesce_set_window(struct coalesce *c, uint64_t window_ns)
{
    uint64_t most = window_ns < COALESCE_WINDOW_NS ? window_ns : COALESCE_WINDOW_NS;
    c->rule.window_ns = c->fd >= 0 ? most : 0;
    c->armed = false; /* a running timer is for the former window */
}

bool coalesce_keeps(struct coalesce *c, unsigned jobs, bool busy)
{
    bool keeps = coalesce_rule_keeps(&c->rule, jobs, busy, clock_now_ns());
    if (keeps && !c->armed) {
        arm(c);
    }
    return keeps && c->armed;
}

void coalesce_end(struct coalesce *c, unsigned jobs)
{
    if (c->rule.start_ns != 0) {
        coalesce_rule_end(&c->rule, jobs, clock_now_ns());
    }
}
