/* A source of pages without memory and without cost, so that only the pool is measured. */
#ifndef BENCH_POOL_SOURCE_H
#define BENCH_POOL_SOURCE_H

#include "daemon/pool/source.h"

#define BENCH_PAGE (UINT64_C(2) << 20)

extern const struct pool_source bench_source;
/* The same, for several streams: one can wait for another, which costs nothing. */
extern const struct pool_source bench_source_waits;

struct bench_counts {
    uint64_t handles; /* that exist */
    uint64_t largest; /* bytes of the largest so far */
};

/* The same as bench_source, but counts. *counts outlives the source. */
void bench_source_counting(struct bench_counts *counts, struct pool_source *ret_source);

#endif
