/*
 * The life of the front's process, from its start to its end:
 *
 *   serving → draining       an operator asks for it: new jobs are refused
 *   draining → serving       the operator resumes
 *   serving, draining, handing over, ending → handing over
 *                            another front follows: launcher and workers stay for it
 *   serving, draining, handing over → ending
 *                            the last front: it ends when its jobs are answered
 *   serving, draining, ending → stopping
 *                            the loop's handles close, and the launcher ends
 *   handing over → leaving   the loop's handles close, and the launcher stays
 *
 * Thread: the loop's.
 */
#ifndef FRONT_MODEL_LIFE_H
#define FRONT_MODEL_LIFE_H

#include <stdbool.h>

enum front_life {
    FRONT_SERVING,
    FRONT_DRAINING,
    FRONT_HANDING_OVER, /* waits until workers have the detached jobs of clients that left */
    FRONT_ENDING,
    FRONT_STOPPING,
    FRONT_LEAVING,
    FRONT_LIVES,
};

/* Ends the process where the list above lacks the step. */
void front_life_step(enum front_life *life, enum front_life to);

static inline bool front_life_refuses_jobs(enum front_life life)
{
    return life == FRONT_DRAINING || life == FRONT_ENDING;
}

static inline bool front_life_stops(enum front_life life)
{
    return life == FRONT_STOPPING || life == FRONT_LEAVING;
}

#endif
