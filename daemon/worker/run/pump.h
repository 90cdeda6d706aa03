/*
 * When the loop asks the device what has ended: at the device's wake-up calls, and every 10 ms, as
 * a failure may come without a call. A device that cannot call is asked without pause for a short
 * while, then every millisecond. It is asked only while something is in flight. Thread: the loop's;
 * pump_wake any.
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

#define PUMP_SPIN_NS (100 * NS_PER_US) /* time without pause, where the device does not call */

/* Asks the device; true while something is in flight. */
typedef bool (*pump_fn)(void *data);

struct pump {
    struct bell *wake;     /* owned: watches fd */
    int fd;                /* owned: an eventfd; -1: none */
    atomic_bool signalled; /* fd was written, and the loop has not asked since */
    uv_timer_t timer;
    uv_idle_t spin;
    bool wakes;          /* the device calls */
    uint64_t spin_until; /* ns */
    pump_fn ask;         /* NULL until pump_start */
    void *data;
};

int pump_init(struct pump *p, uv_loop_t *loop, struct err *e);
/* The pump asks from now on; wakes: does the device call? */
void pump_start(struct pump *p, bool wakes, pump_fn ask, void *data);
/* Something was put in flight. */
void pump_kick(struct pump *p);
void pump_wake(void *pump); /* a backend_wake_fn */
/* Nothing is in flight: the pump asks no more. Threads may still be in pump_wake. Its memory is
 * used until the loop has turned. */
void pump_stop(struct pump *p);
void pump_finish(struct pump *p); /* stopped, and no thread is in pump_wake */

#endif
