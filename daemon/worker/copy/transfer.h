/*
 * What moves whole buffers outside jobs: zeroing one, in pieces, on a stream for that,
 * copying one to its host copy (seal) and from it (restore) by the queues of copies, behind what
 * jobs copy. A buffer that is on the host is sealed there, a step at each poll, and asks for the
 * next one (the wake of `copies`). Thread: the loop's. Never blocks for more than such a step, some
 * milliseconds.
 */
#ifndef WORKER_COPY_TRANSFER_H
#define WORKER_COPY_TRANSFER_H

#include "common/memfd.h"
#include "daemon/worker/copy/copies.h"
#include "daemon/worker/memory/buffers.h"
#include "daemon/worker/memory/device.h"

/* e->code 0: all is well. The buffer may be freed in the callback. */
typedef void (*transfer_done_fn)(void *data, struct buffer *b, const struct err *e);

enum transfer_kind {
    TRANSFER_ZERO,
    TRANSFER_SETTLE, /* nothing, but in the order of the service stream */
    TRANSFER_SEAL,
    TRANSFER_RESTORE
};

struct transfer {
    enum transfer_kind kind;
    struct buffer *buffer; /* in use until done */
    bool superseded;       /* a seal that was asked for again: nobody waits for this one */
    bool waits;            /* its copy has not begun */
    bool pinned;           /* its buffer is kept on the device */
    uint64_t taken;        /* a seal of what is on the host: bytes so far */
    uint64_t zeroed;       /* bytes: zeros for them are in the service stream, or written */
    uint64_t piece;        /* of these, bytes that `marker` is behind */
    uint64_t behind;       /* a seal: the jobs up to this one that use the buffer come before it */
    struct memfd host;     /* seal, restore */
    struct copy copy;      /* seal, restore */
    struct backend_marker *marker; /* of what the service stream does for it; NULL: nothing */
    struct timeline_point point;
    transfer_done_fn done;
    void *data; /* for done */
    struct transfers *t;
    struct transfer *prev, *next;
};

/* Are there jobs that use the buffer, and arrived up to `behind`, which have not ended? */
typedef bool (*transfer_used_fn)(void *data, const struct buffer *b, uint64_t behind);

/* Bytes of a buffer that has no device memory now: 0, > 0 not yet, < 0 they cannot be had. */
typedef int (*transfer_away_fn)(void *data, const struct buffer *b, uint64_t at, void *to,
                                uint64_t bytes, struct err *e);

/* Zeros go to the service stream in pieces, few at a time, and tenants take turns: no buffer waits
 * for the whole of another one, and the device runs other work between two pieces. */
#define TRANSFER_PIECE_CPU (UINT64_C(4) << 20)  /* bytes: about a millisecond */
#define TRANSFER_PIECE     (UINT64_C(32) << 20) /* likewise, of a GPU */

struct transfers {
    struct transfer *first;
    uint64_t zeroing;        /* bytes in the service stream */
    uint64_t last_tenant;    /* of the piece that went there last */
    struct device *device;   /* not owned */
    struct copies *copies;   /* not owned */
    struct buffers *buffers; /* not owned */
    transfer_done_fn done;
    transfer_used_fn used;
    transfer_away_fn away; /* NULL: all have device memory */
    void *data;
};

void transfers_init(struct transfers *t, struct device *device, struct copies *copies,
                    struct buffers *buffers, transfer_done_fn done, transfer_used_fn used,
                    void *data);
/* Starts one; `host` is taken on success (NULL to zero or settle). The buffer's size is > 0. A seal
 * begins when the jobs up to `behind` that use the buffer have ended. */
int transfer_start(struct transfers *t, enum transfer_kind kind, struct buffer *b,
                   struct memfd *host, uint64_t behind, struct err *e);
/* Zeros for a buffer that has device memory again. `done` is called at their end, perhaps before
 * this returns; the front hears nothing. On failure it is not called. */
int transfer_zero(struct transfers *t, struct buffer *b, transfer_done_fn done, void *data,
                  struct err *e);
/* A new seal of the buffer begins: only the new one's result is kept and reported. */
void transfers_supersede(struct transfers *t, const struct buffer *b);
void transfers_poll(struct transfers *t);
/* Is one under way? tenant: into or out of its buffers; NULL: anybody's. A seal that waits for jobs
 * is not: it comes about when they have ended, and only then. */
bool transfers_move(const struct transfers *t, const uint64_t *tenant);

#endif
