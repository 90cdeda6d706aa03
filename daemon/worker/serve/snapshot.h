/*
 * Snapshots of the pool for the front (proto/snapshot.h). A snapshot of numbers is answered at
 * once. One with pieces and events is made in small steps of the loop, so that jobs go on
 * meanwhile: memory for a copy is touched; the pool's tables are copied, while the pool stands
 * still; all buffers are visited for the names of their pieces; the copy is read piece by piece. A
 * buffer that is freed or moved before its turn has no name. Thread: the loop's.
 */
#ifndef WORKER_SERVE_SNAPSHOT_H
#define WORKER_SERVE_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/memfd.h"
#include "daemon/worker/memory/arenas.h"
#include "daemon/worker/run/completion.h"
#include "daemon/worker/serve/channel.h"
#include "proto/snapshot.h"

#define SNAPSHOT_ASKS 16u /* requests that wait; more are refused */

enum snapshot_step { SNAPSHOT_IDLE, SNAPSHOT_TOUCH, SNAPSHOT_NAMES, SNAPSHOT_WALK };

struct snapshot_place; /* the buffer or job that has a piece */

struct snapshot_maker {
    uv_idle_t idle;
    struct channel *channel; /* not owned, as the next four */
    const struct memory *memory;
    struct buffers *buffers;
    const struct completion *completion;
    const struct arenas *arenas;
    uint64_t ask[SNAPSHOT_ASKS]; /* nonces of requests; the first one's snapshot is being made */
    unsigned asks;
    enum snapshot_step step;
    struct memfd out; /* the memory that goes to the front */
    struct snapshot_room room;
    uint8_t *copy; /* owned: a copy of the pool's tables */
    uint64_t copy_bytes, touched;
    struct pool_cursor cursor;
    struct snapshot_place *place; /* owned: a table with open addressing */
    uint64_t places;
    uint64_t last_serial; /* serial of the newest buffer when the copy was made */
    bool failed;          /* an answer could not be sent */
};

void snapshot_init(struct snapshot_maker *m, uv_loop_t *loop, struct channel *channel,
                   const struct memory *memory, struct buffers *buffers,
                   const struct completion *completion, const struct arenas *arenas);
/* Answers with a W_SNAPSHOT, now or later, which may hold an error. ERR_* only if it cannot be
 * sent. */
int snapshot_ask(struct snapshot_maker *m, uint64_t nonce, bool detail, struct err *e);
/* Stops. Its memory is used until the loop has turned. */
void snapshot_finish(struct snapshot_maker *m);

#endif
