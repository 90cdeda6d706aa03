/* The state of evictions and moves (spill.h), for the files of this room. Thread: the loop's. */
#ifndef WORKER_SPILL_SPILL_STATE_H
#define WORKER_SPILL_SPILL_STATE_H

#include "daemon/worker/copy/copies.h"
#include "daemon/worker/copy/transfer.h"
#include "daemon/worker/memory/buffers.h"
#include "daemon/worker/memory/device.h"
#include "daemon/worker/spill/spill_host.h"

#define SPILL_MOVES_MAX 2048u /* buffers that move within the device at once */

struct spill_move;

struct spill {
    struct device *device;       /* not owned */
    struct buffers *buffers;     /* not owned */
    struct copies *copies;       /* not owned */
    struct transfers *transfers; /* not owned */
    struct spill_host host;      /* source of the arena */
    struct pool *arena;          /* owned; NULL: no buffer is copied to the host */
    uint64_t limit;              /* limit of the arena in bytes */
    uint64_t bytes;              /* bytes of the buffers in the arena */
    uint64_t outs, backs; /* counts of buffers evicted to the host, and of buffers brought back */
    unsigned within;      /* number of buffers that are moving within the device */
    uint64_t withins;     /* count of such moves */
    unsigned gathered; /* tries for jobs in a row that failed, and only moved buffers within it */
    bool late;         /* a buffer did not move because its new memory is not mapped yet */
    bool more;         /* the last try for a job ended while the pool moved buffers */
    bool stuck;        /* the last move within the device could not be enqueued */
    bool host_late;    /* the last search for buffers to evict waits for memory of the host */
    bool shed_late;    /* the same for a tenant above its hard limit */
    uint64_t leaving;  /* bytes of device memory that evictions under way will free */
    void (*grown)(void *data); /* NULL: not asked for */
    void *data;
    /* moves that wait for their marker on the service stream, oldest first */
    struct spill_move *first;
    struct spill_move *unmapped;   /* moves to the device whose memory is being mapped */
    struct spill_move *coming;     /* moves whose bytes are in a copy queue */
    struct spill_move *torn;       /* failed moves of buffers that jobs still use */
    uint64_t going[POOL_TENANTS];  /* within prospect_find: bytes that each tenant would lose */
    uint64_t hosted[POOL_TENANTS]; /* of these, bytes that would need room on the host */
};

#define SPILL_LATER 1
/* Reads bytes of a buffer that has no device memory, without the device. SPILL_LATER: they are
 * still on their way to the host. < 0: impossible. Blocks for some milliseconds for some MiB. */
int spill_read(const struct spill *s, const struct buffer *b, uint64_t at, void *to, uint64_t bytes,
               struct err *e);

bool spill_busy(const struct spill *s); /* are moves under way? */
/* Point of the service stream behind all evictions and moves that have commands there; 0: none has.
 * The device calls when it passes that. */
uint64_t spill_expect(const struct spill *s);
void spill_poll(struct spill *s);

#endif
