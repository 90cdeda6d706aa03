/*
 * What moves whole buffers outside jobs: zeroing a new one, copying one to its host copy (seal),
 * and from it (restore). All on a stream of their own. Thread: the loop's. Never blocks.
 */
#ifndef WORKER_TRANSFER_H
#define WORKER_TRANSFER_H

#include "common/memfd.h"
#include "daemon/worker/buffers.h"
#include "daemon/worker/device.h"

enum transfer_kind { TRANSFER_ZERO, TRANSFER_SEAL, TRANSFER_RESTORE };

struct transfer {
    enum transfer_kind kind;
    struct buffer *buffer; /* in use until done */
    bool superseded;       /* a seal that was asked for again: nobody waits for this one */
    struct memfd host;     /* seal, restore */
    struct backend_marker *marker;
    struct timeline_point point;
    struct transfer *prev, *next;
};

/* e->code 0: all is well. The buffer may be freed in the callback. */
typedef void (*transfer_done_fn)(void *data, struct buffer *b, const struct err *e);

struct transfers {
    struct transfer *first;
    struct device *device;   /* not owned */
    struct buffers *buffers; /* not owned */
    transfer_done_fn done;
    void *data;
};

void transfers_init(struct transfers *t, struct device *device, struct buffers *buffers,
                    transfer_done_fn done, void *data);
/* Starts one; `host` is taken on success (MEMFD_NONE to zero). The buffer's size is > 0. */
int transfer_start(struct transfers *t, enum transfer_kind kind, struct buffer *b,
                   struct memfd *host, struct err *e);
/* What is being sealed is being sealed anew: only the transfer that follows is kept and told. */
void transfers_supersede(struct transfers *t, const struct buffer *b);
/* Lets transfers that are started later come after the marker of a job. */
int transfers_wait(struct transfers *t, struct backend_marker *marker, struct err *e);
void transfers_poll(struct transfers *t);

#endif
