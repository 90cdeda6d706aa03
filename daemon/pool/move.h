/*
 * Moving live pieces, so that free bytes in small parts become whole pages (or whole blocks of the
 * source). The pool chooses and keeps the books; the owner, who holds the handles, knows whether a
 * piece may move now and copies. Only pieces asked for with a tag (pool_ask.tag) are ever moved.
 *
 * The pool moves when a request would fail otherwise (at most pool_options.move_most bytes for one
 * request), and when the owner says so: pool_defragment.
 *
 * Thread: the pool's owner. The callback must not call the pool.
 */
#ifndef POOL_MOVE_H
#define POOL_MOVE_H

#include "daemon/pool/pool.h"

struct pool_move {
    uint64_t tag;                  /* as given with the request */
    const struct pool_piece *from; /* asked, tenant and foreign are not set: the owner's are */
    const struct pool_piece *to;   /* as large; no stream has any use of it left */
    unsigned stream;               /* OUT: the copy is done, and no use of `from` left, … */
    uint64_t seq;                  /* OUT: … at this point of that stream; 0: they are past */
    bool foreign;                  /* OUT, by pool_piece_moved: it was not cleared yet */
    uint16_t tenant;               /* OUT, by pool_piece_moved: who pays */
};

struct pool_mover {
    void *user;
    /* Copies `to->size` bytes (all of them: what `to` held may be another tenant's) after whatever
     * writes to `from`, in the order of streams, sets stream and seq, and from now on uses `to`:
     *     pool_piece_moved(&own_piece, move);
     * From then on `from` is not live. Any error: nothing was done, and `from` stays what it was.
     * ERR_BUSY is for a piece that may not move now: addresses of it are bound, or it was exported.
     * Must not wait. */
    int (*move)(void *user, struct pool_move *move, struct err *e);
};

/* NULL: nothing moves, as at first. The struct is copied. */
void pool_set_mover(struct pool *p, const struct pool_mover *mover);

static inline void pool_piece_moved(struct pool_piece *own, struct pool_move *move)
{
    uint64_t asked = own->asked;
    uint16_t tenant = own->tenant;
    move->foreign = own->foreign; /* what was not cleared has come along */
    move->tenant = tenant;
    *own = *move->to;
    own->asked = asked;
    own->tenant = tenant;
    own->foreign = move->foreign;
}

/* Moves at most `most` bytes so that there are more whole pages. Returns the bytes moved; 0: there
 * is nothing to gain. Call it while the device is idle. */
uint64_t pool_defragment(struct pool *p, uint64_t most);

#endif
