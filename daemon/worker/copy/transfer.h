/*
 * Transfers of whole buffers outside jobs: zeroing (in pieces, on the service stream), and copying
 * a buffer to its host copy (seal) or from it (restore), through the copy queues and behind the
 * copies of jobs. A buffer that was evicted to the host is sealed there, a step at each poll; each
 * step asks for the next poll (the wake of `copies`). Blocks for one such step at most, some
 * milliseconds. Thread: the loop's.
 */
#ifndef WORKER_COPY_TRANSFER_H
#define WORKER_COPY_TRANSFER_H

#include "common/clock.h"
#include "common/memfd.h"
#include "daemon/worker/copy/copies.h"
#include "daemon/worker/memory/buffers.h"
#include "daemon/worker/memory/device.h"

/* Called once, except for a superseded transfer that succeeds. e->code 0: success. The buffer may
 * be freed within the call. */
typedef void (*transfer_done_fn)(void *data, struct buffer *b, const struct err *e);

enum transfer_kind {
    TRANSFER_ZERO,
    TRANSFER_SETTLE, /* no bytes: only waits for the service stream */
    TRANSFER_SEAL,
    TRANSFER_RESTORE,
    TRANSFER_LEND, /* of transfer_start: a seal that leaves the buffer as it is */
};

struct transfer {
    enum transfer_kind kind;
    struct buffer *buffer; /* in use until done() */
    bool superseded;       /* by a newer seal, or another front: its success is not reported */
    bool lent;             /* a seal whose copy is the front's alone */
    bool waits;            /* a seal or restore that has not begun to copy */
    bool unmapped;         /* the buffer's memory is being mapped, and nothing has begun */
    uint64_t copied;       /* bytes so far, in the seal of a buffer that is on the host */
    uint64_t zeroed;       /* bytes whose zeros were enqueued in the service stream */
    uint64_t piece;        /* of these, bytes of the piece before `marker` */
    uint64_t piece_ns;     /* when it was enqueued */
    /* a seal waits for the jobs with an `arrival` up to this that use the buffer */
    uint64_t behind;
    struct memfd host;             /* seal, restore */
    struct copy copy;              /* seal, restore */
    struct backend_marker *marker; /* end of its commands on the service stream; NULL: none */
    struct timeline_point point;
    transfer_done_fn done;
    void *data; /* for done */
    struct transfers *t;
    struct transfer *prev, *next;
};

/* Is the buffer used by a job with an `arrival` up to `behind` that has not ended? */
typedef bool (*transfer_used_fn)(void *data, const struct buffer *b, uint64_t behind);

/* Reads bytes of a buffer that has no device memory. 0: done; > 0: not yet; < 0: impossible. */
typedef int (*transfer_away_fn)(void *data, const struct buffer *b, uint64_t at, void *to,
                                uint64_t bytes, struct err *e);

/* Zeros are enqueued in pieces, few at a time, and tenants take turns. A small buffer need not
 * wait for all zeros of a large one, and the device runs other work between two pieces. Where a
 * piece takes longer than it should, on a slow or a busy device, the next ones are smaller. */
#define TRANSFER_PIECE_CPU (UINT64_C(4) << 20)  /* bytes: about 1 ms of a processor */
#define TRANSFER_PIECE     (UINT64_C(32) << 20) /* bytes: about 1 ms of a GPU */
#define TRANSFER_PIECE_MIN (UINT64_C(256) << 10)
#define TRANSFER_LONG_NS   (8 * NS_PER_MS) /* of a piece, and of what is before it */
#define TRANSFER_SHORT_NS  (2 * NS_PER_MS)

struct transfers {
    struct transfer *first;
    uint64_t zeroing;        /* bytes of zeros in the service stream */
    unsigned shrinks;        /* how often a piece is halved now */
    uint64_t last_tenant;    /* tenant of the piece that was enqueued last */
    struct device *device;   /* not owned */
    struct copies *copies;   /* not owned */
    struct buffers *buffers; /* not owned */
    transfer_done_fn done;
    transfer_used_fn used;
    transfer_away_fn away; /* NULL: all buffers have device memory */
    void *data;
};

void transfers_init(struct transfers *t, struct device *device, struct copies *copies,
                    struct buffers *buffers, transfer_done_fn done, transfer_used_fn used,
                    void *data);
/* Starts a transfer of a buffer whose size is > 0. Takes over `host` on success; NULL to zero or
 * to settle. A seal begins when the jobs up to `behind` that use the buffer have ended. */
int transfer_start(struct transfers *t, enum transfer_kind kind, struct buffer *b,
                   struct memfd *host, uint64_t behind, struct err *e);
/* Zeroes a buffer that has got device memory again. The front is not informed. On success `done`
 * is called at the end, perhaps before this returns; on failure it is not called. */
int transfer_zero(struct transfers *t, struct buffer *b, transfer_done_fn done, void *data,
                  struct err *e);
/* Marks earlier seals of the buffer as superseded, before a new one begins. */
void transfers_supersede(struct transfers *t, const struct buffer *b);
/* Marks what a former front asked for as superseded: the next front knows from the inventory what
 * is there, and waits only for a buffer that is being restored. */
void transfers_disown(struct transfers *t);
/* Bytes of the next pieces of zeros. */
uint64_t transfers_piece(const struct transfers *t);
/* A piece of so many bytes took so long: chooses the size of the next ones. */
void transfers_paced(struct transfers *t, uint64_t bytes, uint64_t ns);
void transfers_poll(struct transfers *t);
/* Is a transfer under way? tenant: of that tenant's buffers; NULL: any. A seal that waits for
 * jobs does not count, because only their end makes it go on. */
bool transfers_move(const struct transfers *t, const uint64_t *tenant);

#endif
