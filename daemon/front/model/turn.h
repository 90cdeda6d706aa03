/*
 * The turn of a device that has domains: which of its workers may have jobs in flight. It is a part
 * of the device itself, not of a domain. sched/turns.h has the rules. Thread: the loop's.
 */
#ifndef FRONT_MODEL_TURN_H
#define FRONT_MODEL_TURN_H

#include <stdbool.h>
#include <stdint.h>

struct device;

struct turn {
    struct device *holder; /* the device itself, or one of its domains; NULL: none had a turn yet */
    uint64_t began_ns;
    uint64_t rival_ns; /* since when another worker has been seen to wait; 0: none was */
    uint64_t left_ns;  /* end of the last job of the turn before; 0: no switch is being measured */
    uint64_t cost_ns;  /* of a switch, smoothed; 0: none was measured */
    uint64_t first_ns; /* begin of the turn's first job that has ended; 0: none has */
    uint64_t look_ns;  /* when turns_watch looks for an overrun; 0: not at all */
    uint64_t taken;    /* turns so far */
    uint64_t overruns; /* so far */
};

/* The worker is about to be freed. */
static inline void turn_forget(struct turn *t, const struct device *d)
{
    t->holder = t->holder == d ? NULL : t->holder;
}

#endif
