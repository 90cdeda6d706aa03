/*
 * Decides how long brief jobs that came together wait for more of their kind before they start.
 * They wait only if the daemon's setting (coalesce_window_us) allows it, only while the device has
 * other work, and never longer than the window. A job that comes alone to an idle device therefore
 * never waits, and most jobs that wait would have waited for the device anyway.
 *
 * After a window in which no further job came, the next jobs do not wait: 1 job after the first
 * such window, then 3, up to COALESCE_SKIP_MAX when such windows follow each other. One client
 * beside a long kernel thus pays a window for 1 of 64 jobs. A job whose deadline is within the
 * window does not wait, nor do the jobs that came before it. Thread: the loop's.
 */
#ifndef WORKER_RUN_COALESCE_H
#define WORKER_RUN_COALESCE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/err.h"

#define COALESCE_SKIP_MAX  63u
#define COALESCE_WINDOW_NS UINT64_C(10000000) /* limit of the setting */

/* ---- the decision: no clock, no loop -------------------------------------------------------- */

struct coalesce_rule {
    uint64_t window_ns; /* 0: no job waits */
    uint64_t start_ns;  /* when the window of the waiting jobs ends; 0: no job waits */
    unsigned skip;      /* number of jobs that may start without waiting after a window in vain */
    unsigned left;      /* of these, jobs that are still to come */
};

/* May a job that comes now wait for others? busy: the device has other work. Counts down `left`. */
bool coalesce_rule_wants(struct coalesce_rule *r, bool busy);
/* Should `jobs` jobs that came together go on waiting? Begins their window if it has not begun. */
bool coalesce_rule_keeps(struct coalesce_rule *r, unsigned jobs, bool busy, uint64_t now_ns);
/* Is the deadline so near that its job must not wait? */
bool coalesce_rule_hurries(const struct coalesce_rule *r, uint64_t deadline_ns, uint64_t now_ns);
/* To be called when the `jobs` waiting jobs start. */
void coalesce_rule_end(struct coalesce_rule *r, unsigned jobs, uint64_t now_ns);

/* ---- with a timer --------------------------------------------------------------------------- */

struct coalesce {
    struct coalesce_rule rule;
    uv_poll_t poll;
    int fd;     /* owned: a timerfd, because the loop's timers only count milliseconds; -1: none */
    bool armed; /* the timer will fire, perhaps before the window of the present jobs ends */
    void (*start)(void *data); /* starts the waiting jobs */
    void *data;
};

/* If no timer can be made, which is logged, no job ever waits. */
void coalesce_init(struct coalesce *c, uv_loop_t *loop, void (*start)(void *data), void *data);
void coalesce_finish(struct coalesce *c);
/* At most COALESCE_WINDOW_NS; 0: no job waits. */
void coalesce_set_window(struct coalesce *c, uint64_t window_ns);
/* As coalesce_rule_keeps; start() is called when the window ends. */
bool coalesce_keeps(struct coalesce *c, unsigned jobs, bool busy);
/* As coalesce_rule_end. */
void coalesce_end(struct coalesce *c, unsigned jobs);

#endif
