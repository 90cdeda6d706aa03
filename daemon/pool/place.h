/*
 * Addresses that outlive their memory. A piece of whole pages can give its memory up and return to
 * the same addresses later: other pieces use its pages, in the order of streams, and its addresses
 * are kept (its place). This needs a source of pages and a piece that begins and ends with a page.
 * All other pieces are freed, and return anywhere.
 *
 * Places are not kept for ever: at most a quarter of the address space is kept. When that is full,
 * or a request finds no other addresses, the pool gives up the oldest place that it can, and that
 * piece returns elsewhere. A piece also returns elsewhere
 * - if a stream still uses the memory that it left, and other pieces have that memory;
 * - if whole pages are too few for its place, but a free part elsewhere is large enough.
 *
 * If the request is refused, the place is kept, unless its addresses were needed.
 *
 * Thread: the pool's owner. pool_vacate may call the source when it gives another place up.
 */
#ifndef POOL_PLACE_H
#define POOL_PLACE_H

#include "daemon/pool/pool.h"

/* A kept place. It ends when a request with it (pool_ask.place) succeeds, or by pool_place_leave.
 * All zeros: no place. */
struct pool_place {
    uint64_t offset, size; /* bytes; size 0: no place */
    uint32_t block;        /* the pool's */
    uint32_t generation;
};

/* As pool_free, but keeps the piece's place where possible: *ret_place. */
int pool_vacate(struct pool *p, struct pool_piece *piece, unsigned stream, uint64_t seq,
                struct pool_place *ret_place, struct err *e);
bool pool_place_kept(const struct pool *p, const struct pool_place *place);
void pool_place_leave(struct pool *p, struct pool_place *place); /* zeros are allowed */

#endif
