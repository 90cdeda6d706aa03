/*
 * Upkeep of the device between jobs. Memory that was not used for a while goes back to the driver.
 * Memory that tenants left is zeroed ahead if other tenants could get it. The driver is made to
 * write out what kernels printed, which it otherwise keeps until its next call.
 *
 * A timer starts with a frame of the front, and stops when nothing is left to do. Zeros go to the
 * service stream, and only while nothing is in flight. Blocks for some milliseconds where the
 * driver takes memory back. Thread: the loop's.
 */
#ifndef WORKER_SERVE_UPKEEP_H
#define WORKER_SERVE_UPKEEP_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/worker/memory/device.h"

#define UPKEEP_MS      1000u
#define UPKEEP_SOON_MS 100u /* pause while there is more to do */
/* bytes zeroed in a turn, at most; or one block of a source */
#define UPKEEP_ZERO (UINT64_C(64) << 20)

#define UPKEEP_FAILURES 3u /* failures in a row after which nothing is zeroed ahead any more */

/* Is nothing in flight? */
typedef bool (*upkeep_idle_fn)(void *data);

struct upkeep {
    uv_timer_t timer;
    struct device *device; /* not owned */
    upkeep_idle_fn idle;
    /* to be called when something was put in flight: it makes upkeep_poll run */
    void (*kick)(void *data);
    void *data;
    bool fresh;                    /* a frame was served since the last turn */
    uint64_t since_ns;             /* ns: the last turn after a frame or with something in flight */
    struct backend_marker *marker; /* owned: end of the zeros in flight; NULL: none */
    struct timeline_point point;
    unsigned failures; /* failures in a row */
};

enum upkeep_next { UPKEEP_STOP, UPKEEP_LATER, UPKEEP_SOON };

void upkeep_init(struct upkeep *u, uv_loop_t *loop, struct device *device, upkeep_idle_fn idle,
                 void (*kick)(void *), void *data);
void upkeep_finish(struct upkeep *u); /* must not be busy */
/* To be called when a frame is served. O(1). */
void upkeep_begin(struct upkeep *u);
/* One turn of the timer. Returns when the next one has to be. */
enum upkeep_next upkeep_turn(struct upkeep *u, uint64_t now_ns);
bool upkeep_busy(const struct upkeep *u); /* are zeros in flight? */
/* Ends zeros that arrived or failed. After a failure the next user of the memory zeroes it. If
 * the device is lost, memory_hung reports it. */
void upkeep_poll(struct upkeep *u);

#endif
