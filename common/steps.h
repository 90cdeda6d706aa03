/*
 * Tables of the steps between states: one word for each state, with a bit for each state that may
 * follow it. Thread: any; nothing is changed.
 */
#ifndef COMMON_STEPS_H
#define COMMON_STEPS_H

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#define STEP_TO(state) (1u << (state))

static inline bool step_exists(const unsigned *steps, unsigned from, unsigned to)
{
    return (steps[from] >> to & 1) != 0;
}

/* Ends the process if the table does not have the step. */
static inline void step_check(const unsigned *steps, unsigned from, unsigned to)
{
    if (!step_exists(steps, from, to)) {
        abort();
    }
}

/* The same for a library, which must not end the process of its user: checks only in builds with
 * assertions. */
static inline void step_assert(const unsigned *steps, unsigned from, unsigned to)
{
    assert(step_exists(steps, from, to));
    (void)steps;
    (void)from;
    (void)to;
}

#endif
