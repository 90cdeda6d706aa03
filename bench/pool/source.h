/* A source of pages without memory and without cost, so that only the pool is measured. */
#ifndef BENCH_POOL_SOURCE_H
#define BENCH_POOL_SOURCE_H

#include "daemon/pool/source.h"

#define BENCH_PAGE (UINT64_C(2) << 20)

extern const struct pool_source bench_source;

#endif
