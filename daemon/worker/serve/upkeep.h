/*
 * What is done for the device while nobody asks for anything: memory that was not needed for a
 * while goes back to it, what tenants left is zeroed ahead where others could get it, and the
 * driver is had to put out what kernels printed, which it keeps else until it is called for
 * something. A timer runs for that after frames of the front, and stops when nothing is left to do.
 * Zeroing is ordered on the service stream, and only while nothing is in flight. Thread: the
 * loop's. Blocks for some milliseconds where the device takes memory back.
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

#define UPKEEP_FAILURES 3u /* in a row: then nothing is zeroed ahead any more */

/* Is nothing in flight? */
typedef bool (*upkeep_idle_fn)(void *data);

struct upkeep {
    uv_timer_t timer;
    struct device *device; /* not owned */
    upkeep_idle_fn idle;
    void (*kick)(void *data); /* something was put in flight: upkeep_poll is to be called */
    void *data;
    bool fresh;                    /* somebody was served since the last turn */
    uint64_t since_ns;             /* when that was */
    struct backend_marker *marker; /* owned: of zeros on their way; NULL: none are */
    struct timeline_point point;
    unsigned failures; /* in a row */
};

enum upkeep_next { UPKEEP_STOP, UPKEEP_LATER, UPKEEP_SOON };

void upkeep_init(struct upkeep *u, uv_loop_t *loop, struct device *device, upkeep_idle_fn idle,
                 void (*kick)(void *), void *data);
void upkeep_finish(struct upkeep *u); /* not while it is busy */
/* Somebody is served. O(1). */
void upkeep_begin(struct upkeep *u);
/* What the timer does; tells when to do it again. */
enum upkeep_next upkeep_turn(struct upkeep *u, uint64_t now_ns);
bool upkeep_busy(const struct upkeep *u); /* zeros are on their way */
/* What did not arrive is zeroed by who gets the memory, unless the device is lost: memory_hung. */
void upkeep_poll(struct upkeep *u);

#endif
