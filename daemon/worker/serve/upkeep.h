/*
 * Upkeep of an idle device: memory that was not used for a while goes back to it; memory that
 * tenants left is zeroed ahead where others could get it; the driver writes out what kernels
 * printed, which it keeps otherwise until its next call. A timer runs after frames of the front,
 * and stops when nothing is left to do. Zeros go to the service stream, and only while nothing is
 * in flight. Blocks for some milliseconds where the device takes memory back. Thread: the loop's.
 */
#ifndef WORKER_SERVE_UPKEEP_H
#define WORKER_SERVE_UPKEEP_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/worker/memory/device.h"

#define UPKEEP_MS      1000u
#define UPKEEP_SOON_MS 100u                 /* while there is more to do */
#define UPKEEP_ZERO    (UINT64_C(64) << 20) /* bytes zeroed in a turn, or one block of a source */

#define UPKEEP_FAILURES 3u /* failures in a row after which nothing is zeroed ahead */

/* Is nothing in flight? */
typedef bool (*upkeep_idle_fn)(void *data);

struct upkeep {
    uv_timer_t timer;
    struct device *device; /* not owned */
    upkeep_idle_fn idle;
    void (*kick)(void *data); /* something was put in flight: upkeep_poll is to be called */
    void *data;
    bool fresh;                    /* a frame was served since the last turn */
    uint64_t since_ns;             /* ns: when a frame was served last */
    struct backend_marker *marker; /* owned: end of the zeros on their way; NULL: none */
    struct timeline_point point;
    unsigned failures; /* failures in a row */
};

enum upkeep_next { UPKEEP_STOP, UPKEEP_LATER, UPKEEP_SOON };

void upkeep_init(struct upkeep *u, uv_loop_t *loop, struct device *device, upkeep_idle_fn idle,
                 void (*kick)(void *), void *data);
void upkeep_finish(struct upkeep *u); /* it is not busy */
/* A frame is served. O(1). */
void upkeep_begin(struct upkeep *u);
/* One turn of the timer. Returns when the next one is to be. */
enum upkeep_next upkeep_turn(struct upkeep *u, uint64_t now_ns);
bool upkeep_busy(const struct upkeep *u); /* are zeros on their way? */
/* Ends zeros that arrived or failed. After a failure the next user of the memory zeroes it; if the
 * device is lost: memory_hung. */
void upkeep_poll(struct upkeep *u);

#endif
