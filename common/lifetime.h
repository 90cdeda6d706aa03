/*
 * Plans the offsets of a job's temporaries in one piece of memory. Temporaries that are never
 * needed at the same time share bytes. Steps run in order: an item is needed from its first step to
 * its last.
 * Pure, deterministic; O(n log n) for n items; allocates scratch memory.
 */
#ifndef COMMON_LIFETIME_H
#define COMMON_LIFETIME_H

#include <stdint.h>

#include "common/err.h"

#define LIFETIME_ALIGN 256u /* bytes: every offset is a multiple */

struct lifetime {
    uint64_t size;        /* bytes */
    uint32_t first, last; /* first and last step that mention it; first > last: no step does */
    uint64_t offset;      /* result, bytes; 0: an item without bytes or steps */
};

void lifetime_init(struct lifetime *item, uint64_t size); /* no step mentions it yet */
void lifetime_mention(struct lifetime *item, uint32_t step);
/* *ret_total: bytes of the piece, a multiple of LIFETIME_ALIGN, at most the sum of all sizes, each
 * rounded up. ERR_RANGE: more than 2^63 bytes; ERR_NOMEM. */
int lifetime_plan(struct lifetime *items, unsigned count, uint64_t *ret_total, struct err *e);

#endif
