/*
 * A histogram of times with fixed buckets, and for each bucket the latest job in it that has a
 * trace id (an exemplar of OpenMetrics). Plain data. Thread: one at a time.
 */
#ifndef FRONT_METRICS_HISTOGRAM_H
#define FRONT_METRICS_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BOUNDS  22u
#define HISTOGRAM_BUCKETS (HISTOGRAM_BOUNDS + 1u) /* the last one has no bound */

/* ns, from 10 us to 300 s */
extern const uint64_t histogram_bounds[HISTOGRAM_BOUNDS];

struct exemplar {
    uint64_t trace; /* 0: none */
    uint64_t ns;    /* its time */
    uint64_t wall_ns;
};

/* Zeroed: empty. */
struct histogram {
    uint64_t count[HISTOGRAM_BUCKETS]; /* of each bucket alone */
    uint64_t sum_ns;
    struct exemplar last[HISTOGRAM_BUCKETS];
};

/* Counts a time. trace 0: it has no trace id, and wall_ns is not used. A time that equals a bound
 * is in the bucket of that bound. */
void histogram_note(struct histogram *h, uint64_t ns, uint64_t trace, uint64_t wall_ns);

#endif
