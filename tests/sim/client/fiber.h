/*
 * Fibers: functions that stop in the middle and go on later, all in one thread. A user of libgpud
 * is a fiber, so a call that blocks stops its user only.
 *
 * Thread: one.
 */
#ifndef TEST_SIM_CLIENT_FIBER_H
#define TEST_SIM_CLIENT_FIBER_H

#include <stdbool.h>

struct fiber;

/* run does not return. */
struct fiber *fiber_make(void (*run)(void *arg), void *arg);
/* Frees the memory of a fiber, wherever it stopped. */
void fiber_free(struct fiber *f);
/* Runs the fiber until it stops. Not from within a fiber. */
void fiber_resume(struct fiber *f);
/* Stops the fiber that runs, until it is resumed. */
void fiber_stop(void);
bool fiber_runs(void); /* the caller is a fiber */

#endif
