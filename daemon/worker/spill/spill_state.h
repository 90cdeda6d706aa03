/* The state of what moves between a full device and the host (spill.h). Thread: the loop's. */
#ifndef WORKER_SPILL_SPILL_STATE_H
#define WORKER_SPILL_SPILL_STATE_H

#include "daemon/pool/host.h"
#include "daemon/worker/copy/copies.h"
#include "daemon/worker/copy/transfer.h"
#include "daemon/worker/memory/buffers.h"
#include "daemon/worker/memory/device.h"

#define SPILL_MOVES_MAX 2048u /* buffers that move within the device at once */

struct spill_move;

struct spill {
    struct device *device;       /* not owned */
    struct buffers *buffers;     /* not owned */
    struct copies *copies;       /* not owned */
    struct transfers *transfers; /* not owned */
    struct pool_host host;       /* source of the arena */
    struct pool *arena;          /* owned; NULL: nothing moves to the host */
    uint64_t limit;              /* bytes of the arena at most */
    uint64_t bytes;              /* bytes of buffers that are in the arena */
    uint64_t outs, backs;        /* buffers that went to the host, and that came back, so far */
    unsigned within;             /* buffers that move within the device */
    uint64_t packed;  /* the pool's count of frees when buffers were last put together in vain;
                         UINT64_MAX: never */
    bool stuck;       /* the last buffer that was to move within the device could not be copied */
    uint64_t leaving; /* bytes of device memory that copies under way will free */
    struct spill_move *first;      /* moves on the service stream, oldest first */
    struct spill_move *coming;     /* moves in a copy queue */
    struct spill_move *torn;       /* moves that failed, of buffers that jobs still use */
    uint64_t going[POOL_TENANTS];  /* within prospect_find: bytes of each tenant's that would go */
    uint64_t hosted[POOL_TENANTS]; /* of these, bytes that would need room on the host */
};

#define SPILL_LATER 1
/* Reads bytes of a buffer that has no device memory, without the device. SPILL_LATER: they are on
 * their way to the host. < 0: they cannot be had. Blocks for some milliseconds for some MiB. */
int spill_read(const struct spill *s, const struct buffer *b, uint64_t at, void *to, uint64_t bytes,
               struct err *e);

bool spill_busy(const struct spill *s); /* moves are under way */
void spill_poll(struct spill *s);

#endif
