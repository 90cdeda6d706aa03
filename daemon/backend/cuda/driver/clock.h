/*
 * Converts the device's time to the host's clock. The driver only gives the distance of two events,
 * as a float of milliseconds: it is exact to a microsecond for some seconds, and the two clocks
 * drift apart.
 *
 * While there is work, an event, the anchor, is therefore recorded anew each second, on a stream of
 * its own. Its time follows from the previous anchor. It is bounded by what the host saw: not
 * before the event was recorded, and not after it, or a later event, was seen done.
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
    uint64_t anchor_ns;   /* ns on the host's clock */
    uint64_t next_ns;     /* ns on the host's clock, before `next` was recorded */
    bool pending;         /* `next` was recorded, and was not seen done */
};

/* Blocks until the first anchor has passed. cuda_clock_finish accepts a clock that is zero or
 * half made. */
int cuda_clock_init(struct cuda_clock *c, const struct cuda_driver *cu, struct err *e);
void cuda_clock_finish(struct cuda_clock *c);
/* Renews the anchor after a second. To be called with each marker. Does not block. */
void cuda_clock_tick(struct cuda_clock *c);
/* Host time (ns) of an event that has passed, never later than now. */
uint64_t cuda_clock_of(struct cuda_clock *c, CUevent event);

#endif
