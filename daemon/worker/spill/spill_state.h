/* What moves between a full device and the host (spill.h): the state, and the copies under way.
 * Thread: the loop's. */
#ifndef WORKER_SPILL_SPILL_STATE_H
#define WORKER_SPILL_SPILL_STATE_H

#include "daemon/pool/host.h"
#include "daemon/worker/copy/copies.h"
#include "daemon/worker/copy/transfer.h"
#include "daemon/worker/memory/buffers.h"
#include "daemon/worker/memory/device.h"

#define SPILL_MOVES_MAX 2048u /* buffers that move on the device at once */

struct spill_move;

struct spill {
    struct device *device;        /* not owned */
    struct buffers *buffers;      /* not owned */
    struct copies *copies;        /* not owned */
    struct transfers *transfers;  /* not owned */
    struct pool_host host;        /* what the arena draws on */
    struct pool *arena;           /* owned; NULL: nothing moves to the host */
    uint64_t limit;               /* bytes of the arena at most */
    uint64_t bytes;               /* of buffers that are in it */
    uint64_t outs, backs;         /* buffers that moved, so far */
    unsigned within;              /* buffers on their way from one place on the device to another */
    uint64_t packed;              /* frees of the pool when they were last put together in vain */
    bool stuck;                   /* the last one that was to could not be copied */
    uint64_t leaving;             /* bytes of device memory that copies under way will free */
    struct spill_move *first;     /* under way on the service stream */
    struct spill_move *coming;    /* in the queue of copies */
    struct spill_move *torn;      /* did not arrive, and jobs have the buffer still */
    uint64_t going[POOL_TENANTS]; /* bytes, while it is thought over what could go */
    uint64_t hosted[POOL_TENANTS]; /* of these, what would need room on the host */
};

#define SPILL_LATER 1
/* Bytes of a buffer that is away, without the device. SPILL_LATER: they are on their way to the
 * host. < 0: they cannot be had. Copies: some milliseconds for some MiB. */
int spill_read(const struct spill *s, const struct buffer *b, uint64_t at, void *to, uint64_t bytes,
               struct err *e);

bool spill_busy(const struct spill *s); /* copies are under way */
void spill_poll(struct spill *s);

#endif
