/*
 * The device's time on the host's clock. The driver gives only the distance of two events, as a
 * float of milliseconds: exact to a microsecond for some seconds, and the two clocks drift apart.
 * So an event, the anchor, is recorded anew each second while there is work, on a stream of its
 * own. Its time follows from the anchor before it, and is bounded by what the host saw: not
 * before it was recorded, and not after it, or a later event, was seen done.
 */
#ifndef BACKEND_CUDA_DRIVER_CLOCK_H
#define BACKEND_CUDA_DRIVER_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/backend/cuda/driver/driver.h"

struct cuda_clock {
    const struct cuda_driver *cu;
    CUstream stream;
    CUevent anchor, next; /* owned */
    uint64_t anchor_ns;   /* host clock */
    uint64_t next_ns;     /* host clock, before `next` was recorded */
    bool pending;         /* `next` was recorded and has not been seen done */
};

/* Blocks until the first anchor has passed. finish takes a clock that is zero or half made. */
int cuda_clock_init(struct cuda_clock *c, const struct cuda_driver *cu, struct err *e);
void cuda_clock_finish(struct cuda_clock *c);
/* Renews the anchor after a second; called with each marker. Does not block. */
void cuda_clock_tick(struct cuda_clock *c);
/* Host time (ns) of an event that has passed, so never later than now. */
uint64_t cuda_clock_of(struct cuda_clock *c, CUevent event);

#endif
