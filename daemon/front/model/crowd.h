/*
 * The pause that refused jobs are asked for. Refusing a job costs about as much as running a small
 * one, so a crowd of refused clients must not come again at once: the pause grows with the number
 * of refusals in a short time. Units: nanoseconds. Thread: any, one at a time. Never blocks.
 */
#ifndef FRONT_MODEL_CROWD_H
#define FRONT_MODEL_CROWD_H

#include <stdint.h>

#include "common/clock.h"

#define CROWD_PAUSE_NS (20 * NS_PER_MS) /* for a few, and the time in which refusals count */
#define CROWD_MAX_NS   NS_PER_S
#define CROWD_FEW      16u

struct crowd {
    uint64_t since_ns; /* begin of the present time */
    unsigned now;      /* refusals since then */
    unsigned before;   /* refusals of the time before */
};

/* Counts a refusal. Returns the pause to ask for. */
static inline uint64_t crowd_pause(struct crowd *c, uint64_t now_ns)
{
    uint64_t age = now_ns - c->since_ns;
    if (age >= CROWD_PAUSE_NS) {
        c->before = age < 2 * CROWD_PAUSE_NS ? c->now : 0;
        c->now = 0;
        c->since_ns = now_ns;
    }
    c->now++;
    unsigned crowd = c->now > c->before ? c->now : c->before;
    uint64_t pause = CROWD_PAUSE_NS * (1 + crowd / CROWD_FEW);
    return pause < CROWD_MAX_NS ? pause : CROWD_MAX_NS;
}

#endif
