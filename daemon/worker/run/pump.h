/*
 * When to ask the device: at its wake-up calls; as a backstop every 10 ms, since a failure may come
 * without one; and where it cannot call at all, for a short while without pause, then every
 * millisecond. Only while something is in flight. Thread: the loop's, pump_wake any.
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

#define PUMP_SPIN_NS (100 * NS_PER_US) /* without pause, where the device does not call */

/* Asks; true while something is in flight. */
typedef bool (*pump_fn)(void *data);

struct pump {
    struct bell *wake; /* owned */
    int fd;            /* owned: an eventfd; -1: none */
    atomic_bool told;  /* it was written to and nobody has looked since */
    uv_timer_t timer;
    uv_idle_t spin;
    bool wakes;          /* the device calls */
    uint64_t spin_until; /* ns */
    pump_fn ask;
    void *data;
};

int pump_init(struct pump *p, uv_loop_t *loop, struct err *e);
/* From then on it asks; wakes: does the device call? */
void pump_start(struct pump *p, bool wakes, pump_fn ask, void *data);
/* Something was put in flight. */
void pump_kick(struct pump *p);
void pump_wake(void *pump); /* a backend_wake_fn */
/* Nothing is in flight: it asks no more. Who is in pump_wake still may be. The loop is to turn. */
void pump_stop(struct pump *p);
void pump_finish(struct pump *p); /* stopped, and nobody is in pump_wake any more */

#endif
