/*
 * Two-level segregated fit finds free blocks by size. Rows are powers of two, each cut into 32
 * columns. Bitmaps find the first bin in which every block fits, so insert, remove and find are
 * O(1).
 * Method: Masmano, Ripoll, Crespo, Real, "TLSF: a new dynamic memory allocator for real-time
 * systems", 2004. Here records lie apart from the memory, and a bounded search of the request's own
 * bin finds closer fits that TLSF passes over. Thread: one owner. Nothing blocks.
 */
#ifndef POOL_FIT_H
#define POOL_FIT_H

#include "daemon/pool/block.h"

#define FIT_UNIT    256u /* bytes: sizes are multiples */
#define FIT_COLUMNS 32u
#define FIT_ROWS    40u /* up to 2^44 units: 4 PiB */

struct fit {
    uint64_t rows;              /* bit r: row r has a block */
    uint32_t columns[FIT_ROWS]; /* bit c: bin (r, c) has a block */
    uint32_t head[FIT_ROWS][FIT_COLUMNS];
};

void fit_init(struct fit *f);
void fit_insert(struct fit *f, const struct records *blocks, uint32_t i);
void fit_remove(struct fit *f, const struct records *blocks, uint32_t i);
/* A block of at least `size` bytes, close to the smallest such block. BLOCK_NONE: no block fits, or
 * (only if more than 16 blocks share the request's bin) the search of 16 missed it. */
uint32_t fit_find(const struct fit *f, const struct records *blocks, uint64_t size);
/* Up to `max` blocks, largest bins first; returns how many. */
unsigned fit_top(const struct fit *f, const struct records *blocks, uint32_t *ret_top,
                 unsigned max);
/* Up to `max` blocks of at least `size` bytes, smallest bins first; returns how many. */
unsigned fit_least(const struct fit *f, const struct records *blocks, uint64_t size,
                   uint32_t *ret_least, unsigned max);
/* Bytes of a request that is sure to succeed: the size of a block of the last bin; 0: no blocks. */
uint64_t fit_largest(const struct fit *f, const struct records *blocks);

#endif
