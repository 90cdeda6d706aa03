/*
 * Clearing ahead. Free pages that hold a tenant's bytes can be cleared while the device is idle, so
 * that whoever gets them has nothing to clear. The pool chooses, the owner clears in the order of a
 * stream and tells. Thread: the pool's owner.
 */
#ifndef POOL_CLEAN_H
#define POOL_CLEAN_H

#include "daemon/pool/pool.h"

/* Hands out free memory that is not clean, at most `most` bytes (but at least a page, or for
 * sources of blocks a block) of whole pages in a row. It is nobody's meanwhile: give it back by
 * pool_cleared as soon as the clearing is ordered. False: all that is free is clean, or so small
 * that it shares its page. */
bool pool_unclean(struct pool *p, uint64_t most, struct pool_piece *ret_piece);
/* The piece is zeros after the point `seq` of `stream` (0: now). `done` false: it was not cleared
 * after all. Clears *piece. */
void pool_cleared(struct pool *p, struct pool_piece *piece, bool done, unsigned stream,
                  uint64_t seq);

#endif
