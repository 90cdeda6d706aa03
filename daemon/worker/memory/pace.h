/*
 * How long a kernel is expected to run, from how long it ran before over about as many work items.
 * A guess: what a kernel does may hang on its arguments. It decides only what is started together
 * and ahead of time, never what a job may do. Pure.
 */
#ifndef WORKER_MEMORY_PACE_H
#define WORKER_MEMORY_PACE_H

#include <stdint.h>

#define PACE_UNKNOWN UINT64_MAX
#define PACE_SIZES   16u /* classes of launches, each of 16 times the work items */

struct pace {
    uint64_t ns[PACE_SIZES]; /* 0: it has not run yet */
};

/* Nanoseconds; of a size that never ran: at most what a larger one took, else what a smaller one
 * took, more in proportion. PACE_UNKNOWN: it never ran. */
uint64_t pace_expect(const struct pace *p, uint64_t items);
/* It ran so long. A shorter time is believed at once: others may have had the device meanwhile. */
void pace_note(struct pace *p, uint64_t ns, uint64_t items);

#endif
