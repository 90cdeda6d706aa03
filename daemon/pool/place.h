/*
 * Addresses that outlive their memory. A piece of whole pages can give its memory up and come back
 * to where it was: its pages go to others in the order of streams, its addresses are kept. Only
 * where a source maps a page at several places (pool_pages.aliases), and only for pieces that begin
 * and end with a page; all others are freed, and come back anywhere.
 *
 * A promise with an end: a quarter of the address space is kept at most. When that is full, or
 * there are no other addresses for a request, the place that was given first is given up, and its
 * piece comes back elsewhere. So does one that is wanted back while a stream still uses what it
 * left, if others have that already; and one for which whole pages are too few, if there is room
 * for it elsewhere. When it is refused its place is kept, unless its addresses were wanted.
 *
 * Thread: the pool's owner.
 */
#ifndef POOL_PLACE_H
#define POOL_PLACE_H

#include "daemon/pool/pool.h"

/* Kept until a request with it (pool_ask.place) succeeds, or it is left. All zeros: none. */
struct pool_place {
    uint64_t offset, size; /* bytes; size 0: none */
    uint32_t block;        /* the pool's */
    uint32_t generation;
};

/* As pool_free, and the piece's place is kept, if it may be: *ret_place. */
int pool_vacate(struct pool *p, struct pool_piece *piece, unsigned stream, uint64_t seq,
                struct pool_place *ret_place, struct err *e);
bool pool_place_kept(const struct pool *p, const struct pool_place *place);
void pool_place_leave(struct pool *p, struct pool_place *place); /* one that is none is fine */

#endif
