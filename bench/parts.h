/* The parts of the benchmark. Each adds its rows to the report. */
#ifndef BENCH_PARTS_H
#define BENCH_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/report.h"

struct settings {
    uint64_t live_max;  /* pieces: the curve of latencies goes so far */
    uint64_t samples;   /* of a latency */
    uint64_t pairs;     /* allocations and frees in a row */
    uint64_t churn;     /* operations */
    uint64_t gib;       /* traces are scaled to this peak */
    const char *traces; /* a folder of *.csv; NULL: the built-in ones only */
};

void part_latency(const struct settings *s, struct report *r);
void part_pairs(const struct settings *s, struct report *r);
void part_tight(const struct settings *s, struct report *r); /* mapped over live, driver calls */
/* at the size of a real card */
void part_scale(const struct settings *s, struct report *r);
void part_oom(const struct settings *s, struct report *r);
void part_snapshots(const struct settings *s, struct report *r);

/* False if over 1% more memory (5% below 10^7 operations) was taken after the first tenth, a
 * request was refused, or the pool contradicts itself. */
bool soak(uint64_t operations, struct report *r);

#endif
