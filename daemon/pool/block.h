/*
 * A block: a range of the pool's address space in one state. All blocks together cover the address
 * space without gap; neighbours that could be one block are one. Records only; pool.c and its
 * helpers move blocks between states.
 */
#ifndef POOL_BLOCK_H
#define POOL_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/pool/records.h"

#define BLOCK_NONE RECORD_NONE

enum block_state {
    BLOCK_VOID = 0, /* no memory behind it; whole pages */
    BLOCK_READY,    /* free, no use left on the device */
    BLOCK_PENDING,  /* free for its stream; for others once that has come to `seq` */
    BLOCK_LIVE,     /* handed out */
    BLOCK_SLAB,     /* cut into objects by slab.c */
    BLOCK_HELD,     /* in the hands of a function of the pool that is not over */
    BLOCK_AWAY,     /* with the owner, to be cleared */
    BLOCK_WARM,     /* freed last, as it is: see warm.c */
    BLOCK_LOST,     /* what the source would not take back in order: never used again */
    BLOCK_VACANT,   /* whole pages of addresses, kept for a piece that is elsewhere: vacant.c */
};

struct block {
    uint32_t prev, next;    /* in a bin of its fit; VACANT: in the list of those, by age */
    uint32_t before, after; /* neighbours by address */
    union {
        struct {
            uint32_t older, newer; /* PENDING: by seq; READY with whole pages: list of those;
                                      VACANT with memory in it: as one or the other */
        };
        uint64_t tag; /* LIVE: the owner's name for it, see move.h */
    };
    uint64_t at;    /* bytes from the start of the address space */
    uint64_t size;  /* bytes */
    uint64_t seq;   /* PENDING, VACANT: see above */
    uint32_t owner; /* SLAB: its slab; VACANT: pages with memory in it, which others may take */
    union {
        uint32_t home; /* sources of blocks: the source's block, 0 if VOID */
        uint32_t
            viewed; /* of pages: VOID with pages mapped that are used elsewhere: see recall.c */
    };
    uint32_t generation; /* counts uses of the record: a stale piece is told by it */
    uint16_t tenant;     /* LIVE: who pays */
    uint8_t stream;      /* PENDING, VACANT */
    uint8_t state : 4;   /* enum block_state */
    uint8_t edge : 1;    /* never merged with the one before: a source's block begins */
    uint8_t whole : 3;   /* in which list of whole pages + 1; 0: in none */
};

_Static_assert(sizeof(struct block) == 64, "a block is a cache line");

static inline struct block *block_at(const struct records *blocks, uint32_t i)
{
    return records_at(blocks, i);
}

#endif
