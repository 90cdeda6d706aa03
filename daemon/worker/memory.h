/*
 * Device memory of this worker: the pool over the back end's pages or blocks. Thread: the loop's.
 */
#ifndef WORKER_MEMORY_H
#define WORKER_MEMORY_H

#include <stdint.h>

#include "common/err.h"
#include "daemon/backend/backend.h"
#include "daemon/pool/pool.h"

struct memory {
    struct pool *pool;       /* owned */
    struct pool_pages pages; /* what the pool draws on: one of the two */
    struct pool_blocks blocks;
    const struct backend *b;
    struct backend_device *d; /* not owned */
};

struct memory_piece {
    struct backend_ref ref; /* block NULL: none */
    struct pool_piece pool;
};

struct msg_w_pool;

int memory_init(struct memory *m, const struct backend *b, struct backend_device *d, uint64_t limit,
                uint64_t max_alloc, struct err *e);
void memory_finish(struct memory *m); /* all pieces are free; may be called before init */
/* size > 0. ERR_DEVICE_MEMORY with what was wanted and what is free. */
int memory_alloc(struct memory *m, uint64_t size, struct memory_piece *ret_piece, struct err *e);
/* All commands on it have completed. A piece that is none is allowed. */
void memory_free(struct memory *m, struct memory_piece *piece);
void memory_trim(struct memory *m); /* gives cached blocks back to the device */
void memory_stats(const struct memory *m, struct msg_w_pool *ret_stats);

#endif
