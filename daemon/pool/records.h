/*
 * A table of fixed-size records named by index. Address space for all records is reserved at once
 * and the kernel supplies memory on first use, so a record never moves and allocating one is O(1).
 * A free record's first four bytes belong to this table; its other bytes keep their value, so a
 * generation can live there. New records are zeros. Thread: one owner. Blocks only in init and
 * finish.
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
    uint32_t made; /* records ever used: those after them are untouched */
    uint32_t live;
    uint32_t free; /* head of the free list */
};

int records_init(struct records *r, size_t bytes, uint32_t max, struct err *e);
void records_finish(struct records *r);   /* a zeroed table is allowed */
uint32_t records_take(struct records *r); /* RECORD_NONE if all are in use */
void records_give(struct records *r, uint32_t index);

static inline void *records_at(const struct records *r, uint32_t index)
{
    return r->base + (size_t)index * r->bytes;
}

#endif
