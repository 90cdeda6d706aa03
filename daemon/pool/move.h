/*
 * Moves live pieces, so that scattered free bytes become whole pages (or whole blocks of the
 * source). The pool chooses pieces and keeps the records. The owner has the handles: it decides
 * whether a piece may move now, and copies. Only pieces requested with a tag (pool_ask.tag) move.
 *
 * The pool moves pieces when a request would fail otherwise, a little ahead of that, and when the
 * owner calls pool_defragment. It looks through all blocks several times (a sweep, which moves at
 * most pool_options.move_most bytes) and does a slice of that in each call. A request that needs
 * more is refused with pool_refusal.moves set. Tried again, it goes on where it ended; requests and
 * frees in between are allowed. Requests share a sweep, so one that came late may be refused
 * although another sweep would help.
 *
 * Thread: the pool's owner. The callback must not call the pool.
 */
#ifndef POOL_MOVE_H
#define POOL_MOVE_H

#include "daemon/pool/pool.h"

/* Units of work in a slice, unless pool_options.slice sets them: a block examined is one, a piece
 * moved 64. A call ends with the first piece or stretch of blocks that reaches it, below twice as
 * much. */
#define POOL_SLICE 8192u

struct pool_move {
    uint64_t tag;                  /* as given with the request */
    const struct pool_piece *from; /* asked, tenant and foreign are not set: the owner has them */
    const struct pool_piece *to;   /* of the same size; no stream uses it any more */
    unsigned stream;               /* OUT: the copy is complete and `from` unused from … */
    uint64_t seq;                  /* OUT: … this point of that stream on; 0: already */
    bool foreign;                  /* OUT, by pool_piece_moved: the piece was not cleared yet */
    uint16_t tenant;               /* OUT, by pool_piece_moved: charged for the piece */
};

struct pool_mover {
    void *user;
    /* Copies `to->size` bytes (all: `to` may hold another tenant's bytes) after every write to
     * `from`, in the order of streams. Sets stream and seq, and uses `to` from now on:
     *     pool_piece_moved(&own_piece, move);
     * After that `from` is not live. On any error nothing happened and `from` stays live. ERR_BUSY:
     * the piece may not move now, because its addresses are bound or it was exported. ERR_LIMIT: no
     * piece may, before a stream has advanced. Must not wait. */
    int (*move)(void *user, struct pool_move *move, struct err *e);
};

/* NULL: nothing moves, which is the initial state. The struct is copied. */
void pool_set_mover(struct pool *p, const struct pool_mover *mover);

static inline void pool_piece_moved(struct pool_piece *own, struct pool_move *move)
{
    uint64_t asked = own->asked;
    uint32_t change = own->change;
    uint16_t tenant = own->tenant;
    move->foreign = own->foreign; /* the copy has the same bytes, cleared or not */
    move->tenant = tenant;
    *own = *move->to;
    own->asked = asked;
    own->change = change;
    own->tenant = tenant;
    own->foreign = move->foreign;
}

/* Pieces that the owner refused to move may move now. Without this call the pool tries them only so
 * often before pieces are freed. */
void pool_move_anew(struct pool *p);
/* Does a slice of moving pieces together to gain whole pages, at most `most` bytes. True: there is
 * more to do, call it again. *ret_moved (may be NULL): bytes. Call it while the device is idle. */
bool pool_defragment(struct pool *p, uint64_t most, uint64_t *ret_moved);

#endif
