/*
 * When brief jobs that came together wait for more of their kind before they start: only where the
 * daemon is told to (coalesce_window_us), only while the device has other work, and never longer
 * than the window. When the device has nothing else any more they start at once, so a job that
 * comes alone to an idle device is never held, and what is held mostly would have waited anyway.
 * Where nothing came in the window, the next jobs are not held: 1 of them, then 2, up to
 * HOLD_SKIP_MAX for each time in a row, so that one client beside a long kernel pays a window for
 * 1 of 64 jobs. One whose deadline comes within the window waits for nobody, and nor do those that
 * came before it. Thread: the loop's.
 */
#ifndef WORKER_RUN_HOLD_H
#define WORKER_RUN_HOLD_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/err.h"

#define HOLD_SKIP_MAX  63u
#define HOLD_WINDOW_NS UINT64_C(10000000) /* the longest */

/* ---- the decision: no clock, no loop -------------------------------------------------------- */

struct hold_rule {
    uint64_t window_ns; /* 0: nothing is held */
    uint64_t due_ns;    /* those that are held start then; 0: nothing is held */
    unsigned skip;      /* jobs that are not held after the last window in which nothing came */
    unsigned left;      /* of these */
};

/* May one that comes now wait for others? busy: the device has other work. */
bool hold_rule_wants(struct hold_rule *r, bool busy);
/* Are `jobs` that came together to wait on? Begins their window if it has not begun. */
bool hold_rule_keeps(struct hold_rule *r, unsigned jobs, bool busy, uint64_t now_ns);
/* Is the deadline so near that who has it does not wait? */
bool hold_rule_hurries(const struct hold_rule *r, uint64_t deadline_ns, uint64_t now_ns);
/* They start, so many. */
void hold_rule_end(struct hold_rule *r, unsigned jobs, uint64_t now_ns);

/* ---- with a timer --------------------------------------------------------------------------- */

struct hold {
    struct hold_rule rule;
    uv_poll_t poll;
    int fd;     /* owned: a timerfd, since the loop's timers know milliseconds only; -1: none */
    bool armed; /* it will fire, perhaps too early for those that are held by then */
    void (*start)(void *data);
    void *data;
};

/* Without a timer (it is logged) nothing is ever held. start(): those that are held are to. */
void hold_init(struct hold *h, uv_loop_t *loop, void (*start)(void *data), void *data);
void hold_finish(struct hold *h);
void hold_set(struct hold *h, uint64_t window_ns); /* more than HOLD_WINDOW_NS counts as that */
/* As the rule's; where it keeps them, start() is called in time. */
bool hold_keeps(struct hold *h, unsigned jobs, bool busy);
void hold_end(struct hold *h, unsigned jobs);

#endif
