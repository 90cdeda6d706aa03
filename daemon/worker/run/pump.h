/*
 * Decides when the loop asks the device what has ended: on the device's wake-up calls, and every 10
 * ms, because a failure may come without a call. A device that cannot call is asked without pause
 * for PUMP_SPIN_NS, then every millisecond. The pump asks only while something is in flight.
 * Thread: the loop's; pump_wake: any.
 */
#ifndef WORKER_RUN_PUMP_H
#define WORKER_RUN_PUMP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/clock.h"
#include "common/err.h"
#include "daemon/loop/bell.h"

/* how long a device that does not call is asked without pause */
#define PUMP_SPIN_NS (100 * NS_PER_US)

/* Asks the device; returns true while something is in flight. */
typedef bool (*pump_fn)(void *data);

struct pump {
    struct bell *wake;     /* owned: watches fd */
    int fd;                /* owned: an eventfd; -1: none */
    atomic_bool signalled; /* fd was written, and the loop has not asked the device since */
    uv_timer_t timer;
    uv_idle_t spin;
    bool wakes;          /* the device calls pump_wake */
    uint64_t spin_until; /* ns */
    pump_fn ask;         /* NULL until pump_start */
    void *data;
};

int pump_init(struct pump *p, uv_loop_t *loop, struct err *e);
/* Starts asking. wakes: does the device call? */
void pump_start(struct pump *p, bool wakes, pump_fn ask, void *data);
/* To be called when something was put in flight. */
void pump_kick(struct pump *p);
void pump_again(struct pump *p); /* asks once more in the next turn of the loop */
void pump_wake(void *pump);      /* a backend_wake_fn */
/* Stops asking; nothing may be in flight. Threads may still be in pump_wake. The pump's memory
 * is used until the loop has turned. */
void pump_stop(struct pump *p);
void pump_finish(struct pump *p); /* stopped, and no thread is in pump_wake */

#endif
