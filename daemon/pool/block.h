/*
 * A block is a range of the pool's address space in one state. Blocks cover the address space
 * without gaps, and neighbours that can be one block are one. This file has records only; space.c
 * and the files above it change states.
 */
#ifndef POOL_BLOCK_H
#define POOL_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/pool/records.h"

#define BLOCK_NONE RECORD_NONE

enum block_state {
    BLOCK_VOID = 0, /* addresses without memory; whole pages */
    BLOCK_READY,    /* free for every stream */
    BLOCK_PENDING,  /* free for its stream, for other streams once that stream has reached `seq` */
    BLOCK_LIVE,     /* handed out */
    BLOCK_SLAB,     /* cut into objects by slab.c */
    BLOCK_HELD,     /* in use by a pool function that is still running */
    BLOCK_AWAY,     /* handed to the owner for clearing: clean.h */
    BLOCK_WARM,     /* freed lately, neither merged nor indexed: warm.c */
    BLOCK_FAILED,   /* free, of pages that the source failed to map: late.c */
    BLOCK_LOST,     /* memory that the source failed to take back; never used again */
    BLOCK_VACANT, /* addresses kept for a piece whose bytes are elsewhere; whole pages: vacant.c */
};

struct block {
    uint32_t prev, next;    /* in a bin of its fit; VACANT: in the list of kept places, by age;
                               FAILED: in the list of these */
    uint32_t before, after; /* neighbours by address */
    union {
        struct {
            uint32_t older, newer; /* PENDING: by seq; READY with whole pages: in its list of these;
                                      VACANT with memory in it: as PENDING or in `idle` */
        };
        uint64_t tag; /* LIVE: the owner's name for it, see move.h */
    };
    uint64_t at;    /* bytes from the start of the address space */
    uint64_t size;  /* bytes */
    uint64_t seq;   /* PENDING, VACANT: a stream may use the memory up to this point */
    uint32_t owner; /* SLAB: its slab; VACANT: number of pages with memory that others may get;
                       LIVE: log2 of its alignment */
    union {
        uint32_t home;   /* sources of blocks: the source's block, 0 if VOID */
        uint32_t viewed; /* sources of pages: VOID, and pages stay mapped that are used elsewhere:
                            recall.c */
    };
    uint32_t generation; /* counts uses of the record, so that a stale piece is recognised */
    uint16_t tenant;     /* LIVE: charged for it */
    uint8_t stream;      /* PENDING, VACANT */
    uint8_t state : 4;   /* enum block_state */
    uint8_t edge : 1;    /* never merged with the block before: a source's block begins here */
    uint8_t whole : 3;   /* 1 + its list of blocks with whole pages; 0: in no list */
};

_Static_assert(sizeof(struct block) == 64, "a block is a cache line");

static inline struct block *block_at(const struct records *blocks, uint32_t i)
{
    return records_at(blocks, i);
}

#endif
