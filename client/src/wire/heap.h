/*
 * Allocates pieces of [0, size) bytes. The bookkeeping lies outside of the memory that is handed
 * out, because other processes may write there. Near-best fit by size classes; adjacent free pieces
 * are merged. Thread: one at a time. Allocates small nodes. O(1), except when only the request's
 * own class has free pieces: then the search visits all of them.
 */
#ifndef CLIENT_WIRE_HEAP_H
#define CLIENT_WIRE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#define HEAP_ALIGN 256u /* bytes: enough for kernels, and more than a cache line */
#define HEAP_BINS  64u
#define HEAP_NONE  UINT64_MAX

struct heap_piece {
    uint64_t offset;
    uint64_t size; /* bytes, a multiple of HEAP_ALIGN */
    bool taken;
    struct heap_piece *before, *after;      /* in memory */
    struct heap_piece *bin_prev, *bin_next; /* while the piece is free */
};

struct heap {
    uint64_t size;
    uint64_t used; /* bytes */
    struct heap_piece *first;
    struct heap_piece *bin[HEAP_BINS]; /* free pieces, by the power of two of their size */
    struct heap_piece **taken;         /* owned; by offset / HEAP_ALIGN. The system provides the
                                          array's pages at the first access. */
};

/* false: out of memory. size: a multiple of HEAP_ALIGN. */
bool heap_init(struct heap *h, uint64_t size);
void heap_finish(struct heap *h); /* also while pieces are handed out */
/* The offset of a new piece. HEAP_NONE: no free piece is large enough, or out of memory. size 0
 * takes as much as 1. */
uint64_t heap_alloc(struct heap *h, uint64_t size);
/* false: no handed-out piece begins there. */
bool heap_free(struct heap *h, uint64_t offset);
/* Bytes of the handed-out piece that begins there, 0: none. */
uint64_t heap_size(const struct heap *h, uint64_t offset);
/* Bytes that a request of `size` takes: a multiple of HEAP_ALIGN; 0: too large to round up. */
uint64_t heap_rounded(uint64_t size);

#endif
