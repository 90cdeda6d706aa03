/*
 * Predicts how long a kernel runs, from its earlier launches over about as many work items. It is a
 * guess, because a kernel's time may depend on its arguments. It decides only which jobs start
 * together and ahead of time, never what a job may do. Pure.
 */
#ifndef WORKER_MEMORY_PACE_H
#define WORKER_MEMORY_PACE_H

#include <stdint.h>

#define PACE_UNKNOWN UINT64_MAX
/* classes of launches; each class covers 16 times the work items of the one before */
#define PACE_SIZES 16u

struct pace {
    uint64_t ns[PACE_SIZES]; /* by class; 0: no launch of the class has run */
};

/* The expected time in ns. Without a launch of that class it is the time of the next larger
 * class that has one, else that of a smaller class in proportion. PACE_UNKNOWN: the kernel never
 * ran. */
uint64_t pace_expect(const struct pace *p, uint64_t items);
/* Records the time of a launch. A shorter time counts at once, because a longer one may include
 * waits for other jobs. */
void pace_note(struct pace *p, uint64_t ns, uint64_t items);

#endif
