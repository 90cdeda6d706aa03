/*
 * Sources that make their calls later. Such a source (pool_source.issued) appends the calls of the
 * pool to a log and returns success at once. A thread of its own makes them, in their order. The
 * pool goes on as if they were complete, because any order of its own calls is safe for the device.
 *
 * Only the first user of memory has to wait: a piece with a ticket (pool_piece.ticket) is not used
 * before pool_piece_late() says that it is ready. A piece may be freed at any time.
 *
 * The source's owner reports to the pool, on the pool's thread and in the order of the numbers:
 * first what failed up to a number, then that the calls up to it are complete.
 *
 * Failed memory is given back to the source, when its pieces are freed. The pool then takes no new
 * memory from the source until some was given back or pool_tick() is called: a full device would
 * refuse it again and again.
 */
#ifndef POOL_LATE_H
#define POOL_LATE_H

#include "daemon/pool/pool.h"

/* All calls up to this number are complete. */
void pool_mapped(struct pool *p, uint64_t number);
/* Call `number` failed, of create, map or access: handles as a whole at [at, at + bytes). lost: an
 * earlier unmap failed, and nothing can be mapped there any more. */
void pool_failed(struct pool *p, uint64_t number, uint64_t at, uint64_t bytes, bool lost);
/* An unmap failed: so many bytes are lost. */
void pool_lost(struct pool *p, uint64_t bytes);
/* Call `number` of clear failed, or was not made: what is there may hold anybody's bytes. */
void pool_uncleared(struct pool *p, uint64_t number, uint64_t at, uint64_t bytes);

bool pool_outstanding(const struct pool *p); /* are there calls that are not complete? */
/* The last call that a piece waits for; 0: it can be used now, and nothing is to be asked. */
uint64_t pool_ticket(const struct pool *p, const struct pool_piece *piece);

enum pool_late {
    POOL_READY,  /* it can be used, and has no ticket any more */
    POOL_WAITS,  /* not yet: ask again after pool_mapped() */
    POOL_FAILED, /* it has no memory, and is good for pool_free() only */
};

/* Of a live piece. May set piece->foreign. */
enum pool_late pool_piece_late(const struct pool *p, struct pool_piece *piece);

#endif
