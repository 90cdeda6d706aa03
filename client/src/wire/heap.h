/*
 * Pieces of [0, size) bytes: what lies where stands outside of the memory that is handed out, since
 * others may write there. Near-best fit by size classes; neighbours that are free become one.
 * Thread: one at a time. Allocates small nodes. O(1), but for a class whose pieces are all that is
 * left: then each of them is looked at.
 */
#ifndef CLIENT_WIRE_HEAP_H
#define CLIENT_WIRE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#define HEAP_ALIGN 256u /* bytes: what kernels want at least, and more than a cache line */
#define HEAP_BINS  64u
#define HEAP_NONE  UINT64_MAX

struct heap_piece {
    uint64_t offset;
    uint64_t size; /* bytes, a multiple of HEAP_ALIGN */
    bool taken;
    struct heap_piece *before, *after;      /* in memory */
    struct heap_piece *bin_prev, *bin_next; /* while it is free */
};

struct heap {
    uint64_t size;
    uint64_t used; /* bytes */
    struct heap_piece *first;
    struct heap_piece *bin[HEAP_BINS]; /* free ones, by the magnitude of their size */
    struct heap_piece **taken;         /* owned; by offset / HEAP_ALIGN. The system gives such an
                                          array its pages when they are touched. */
};

/* false: out of memory. size: a multiple of HEAP_ALIGN. */
bool heap_init(struct heap *h, uint64_t size);
void heap_finish(struct heap *h); /* taken or not */
/* HEAP_NONE: no piece is large enough, or out of memory. size 0 takes as much as 1. */
uint64_t heap_alloc(struct heap *h, uint64_t size);
/* false: nothing was handed out there. */
bool heap_free(struct heap *h, uint64_t offset);
/* Bytes of the piece that was handed out there, 0: none. */
uint64_t heap_size(const struct heap *h, uint64_t offset);
/* Bytes of a request as it is handed out; 0: too large for any. */
uint64_t heap_rounded(uint64_t size);

#endif
