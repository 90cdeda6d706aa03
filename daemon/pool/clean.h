/*
 * Clears free memory ahead of requests. While the device is idle, free pages that hold a tenant's
 * bytes can be zeroed, so that the next tenant need not clear them. The pool chooses pages, the
 * owner clears them in the order of a stream and reports back. Thread: the pool's owner. Nothing
 * blocks.
 */
#ifndef POOL_CLEAN_H
#define POOL_CLEAN_H

#include "daemon/pool/pool.h"

/* Hands out one row of free memory that is not clean, at most `most` bytes but at least a page (or,
 * for sources of blocks, a block). No tenant has it until pool_cleared; call that as soon as the
 * clearing is ordered. False: all free memory is clean, or shares its page with pieces, or a
 * bounded search found none. */
bool pool_unclean(struct pool *p, uint64_t most, struct pool_piece *ret_piece);
/* The piece is zeros from point `seq` of `stream` on (0: now). `done` false: it was not cleared.
 * Clears *piece. */
void pool_cleared(struct pool *p, struct pool_piece *piece, bool done, unsigned stream,
                  uint64_t seq);

#endif
