/*
 * How long a kernel is expected to run, from its times over about as many work items. It is a
 * guess: the time of a kernel may depend on its arguments. It decides only which jobs start
 * together and ahead of time, never what a job may do. Pure.
 */
#ifndef WORKER_MEMORY_PACE_H
#define WORKER_MEMORY_PACE_H

#include <stdint.h>

#define PACE_UNKNOWN UINT64_MAX
#define PACE_SIZES   16u /* classes of launches, each of 16 times the work items */

struct pace {
    uint64_t ns[PACE_SIZES]; /* by class; 0: no launch of the class has run */
};

/* Nanoseconds. For a size that never ran: at most the time of a larger size, else the time of a
 * smaller one in proportion. PACE_UNKNOWN: the kernel never ran. */
uint64_t pace_expect(const struct pace *p, uint64_t items);
/* Notes the time of a launch. A shorter time counts at once: other jobs may have used the device
 * during longer ones. */
void pace_note(struct pace *p, uint64_t ns, uint64_t items);

#endif
