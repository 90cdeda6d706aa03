/*
 * Fixed-size records that are named by index. Address space for all of them is reserved at once and
 * the kernel gives memory as they come into use: a record never moves, taking one is O(1), and the
 * limit is set here. The first four bytes of a record that is not in use are this file's; all other
 * bytes keep what they held (so a generation can live in them); they start as zeros.
 * Thread: one owner. Blocks only in init and finish.
 */
#ifndef POOL_RECORDS_H
#define POOL_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define RECORD_NONE UINT32_MAX

struct records {
    uint8_t *base;
    size_t bytes;  /* of one record, ≥ 4 */
    uint32_t max;  /* records */
    uint32_t made; /* ever taken: the ones after are untouched */
    uint32_t live;
    uint32_t free; /* head of the list of those given back */
};

int records_init(struct records *r, size_t bytes, uint32_t max, struct err *e);
void records_finish(struct records *r);   /* a zeroed one is fine */
uint32_t records_take(struct records *r); /* RECORD_NONE if all are in use */
void records_give(struct records *r, uint32_t index);

static inline void *records_at(const struct records *r, uint32_t index)
{
    return r->base + (size_t)index * r->bytes;
}

#endif
