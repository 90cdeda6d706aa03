/* The parts of the benchmark. Each adds its rows to the report. */
#ifndef BENCH_POOL_PARTS_H
#define BENCH_POOL_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/pool/report.h"

struct settings {
    uint64_t live_max;  /* live pieces: the end of the curve of latencies */
    uint64_t samples;   /* of a latency */
    uint64_t pairs;     /* allocations and frees in a row */
    uint64_t churn;     /* operations */
    uint64_t gib;       /* traces are scaled to this peak */
    bool smoke;         /* fewer traces, sizes and rounds */
    const char *traces; /* a folder of *.csv; NULL: only the built-in traces */
};

void part_latency(const struct settings *s, struct report *r);
void part_pairs(const struct settings *s, struct report *r);
void part_tight(const struct settings *s, struct report *r); /* mapped / live bytes, driver calls */
/* at the size of a real card */
void part_scale(const struct settings *s, struct report *r);
void part_streams(const struct settings *s, struct report *r); /* frees that complete later */
void part_jitter(const struct settings *s, struct report *r);  /* sizes that vary by 2% */
void part_models(const struct settings *s, struct report *r);  /* loads of models and images */
void part_first(const struct settings *s, struct report *r);   /* all memory in few requests */
void part_moves(const struct settings *s, struct report *r);   /* a call that moves pieces */
void part_oom(const struct settings *s, struct report *r);
void part_snapshots(const struct settings *s, struct report *r);

/* False if more than 1% of memory (5% below 10^7 operations) was added after the first tenth, a
 * request was refused, or the pool is inconsistent. */
bool soak(uint64_t operations, struct report *r);

#endif
