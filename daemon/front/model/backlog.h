/*
 * How much work is ready: the expected times of the ready jobs of one tenant and class, so that a
 * job can be told what is before it. Jobs with a deadline go by it, and are counted in slots of
 * time, which are at most a seventh as wide as the time until then: jobs whose deadline comes near
 * move to finer slots, as in a timing wheel (G. Varghese, T. Lauck, SOSP 1987). Jobs without one go
 * behind them, in the order in which they came. So all answers are estimates. Each call is O(1) for
 * a job without a deadline, and O(slots that have jobs), at most DUES_LEVELS x DUES_SLOTS, for
 * others; jobs move at most DUES_LEVELS - 1 times. Thread: the loop's.
 */
#ifndef FRONT_MODEL_BACKLOG_H
#define FRONT_MODEL_BACKLOG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"

#define DUES_LEVELS 5u
#define DUES_SLOTS  64u

struct backlog_place;

struct due_slot {
    struct backlog_place *first; /* its jobs, by `next` */
    uint64_t ns;                 /* expected times of its jobs */
    uint64_t index;              /* which one it is: its time in widths of the level */
    unsigned jobs;
};

/* Jobs with deadlines. */
struct dues {
    struct due_slot slot[DUES_LEVELS][DUES_SLOTS];
    uint64_t used[DUES_LEVELS]; /* a bit for each slot that has jobs */
};

/* Zeroed: nothing is ready. */
struct backlog {
    unsigned jobs;
    unsigned unsure;     /* of them, whose times are not known */
    uint64_t ns;         /* of all of them */
    uint64_t weight;     /* that its owner noted when the first of them came */
    uint64_t came, gone; /* ns of all jobs without deadlines so far */
    struct dues *dues;   /* owned; NULL: no job had a deadline */
};

/* Where a job is in it; zeroed: nowhere. */
struct backlog_place {
    bool in;
    bool due; /* it is in a slot */
    bool sure;
    uint8_t level, slot;
    uint64_t ns;     /* its expected time */
    uint64_t before; /* `came` when it came */
    uint64_t due_ns;
    struct backlog_place *prev, *next; /* in its slot */
};

/* due_ns: its deadline; NS_NEVER: none. Without memory for slots it counts as a job without. */
void backlog_add(struct backlog *b, struct backlog_place *p, uint64_t due_ns, uint64_t now_ns,
                 uint64_t ns, bool sure);
void backlog_drop(struct backlog *b, struct backlog_place *p); /* not in it: nothing happens */
/* The expected times of the jobs before this one, which is in the backlog. */
uint64_t backlog_before(const struct backlog *b, const struct backlog_place *p, uint64_t due_ns);
/* The same for a job that would come now. */
uint64_t backlog_before_new(const struct backlog *b, uint64_t due_ns);
/* Time has passed. To be called before a job with a deadline is asked about. */
void backlog_pass(struct backlog *b, uint64_t now_ns);
/* How long the jobs of a backlog take beside those of others. */
struct backlog_pace {
    double times;     /* their own time, while others have jobs; at least 1 */
    double others_ns; /* that others take in sum: after that, own jobs take their own time */
    double least;     /* at least their own time so often: at a cap; 0: none */
    double part;      /* of all that: several devices share the jobs, estimates have a margin */
};

/* Whether a new job of `ns`, with this deadline, leaves the later deadlines as they can be kept, if
 * the first job begins at begin_ns. Deadlines are those of begins, and count as the begin of their
 * slot. *ret_late: the first one that would be missed. */
bool backlog_fits(const struct backlog *b, uint64_t due_ns, uint64_t ns, uint64_t now_ns,
                  uint64_t begin_ns, const struct backlog_pace *pace, uint64_t *ret_late);
void backlog_finish(struct backlog *b);

#endif
