/*
 * Snapshots of the pool for the front (proto/snapshot.h). A snapshot of numbers is answered at
 * once. A snapshot with pieces and events is made in small steps of the loop, so that jobs go on
 * meanwhile:
 * - touch the memory for a copy;
 * - copy the pool's tables, while the pool stands still;
 * - visit all buffers, to learn which piece belongs to which;
 * - read the copy piece by piece.
 *
 * A buffer that is freed or moved before it is visited has no name in the snapshot. Thread: the
 * loop's.
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

#define SNAPSHOT_ASKS 16u /* requests that may wait; more are refused */

enum snapshot_step { SNAPSHOT_IDLE, SNAPSHOT_TOUCH, SNAPSHOT_NAMES, SNAPSHOT_WALK };

struct snapshot_place; /* a piece of the pool and the buffer or job that has it */

struct snapshot_maker {
    uv_idle_t idle;
    struct channel *channel; /* not owned, like the next four */
    const struct memory *memory;
    struct buffers *buffers;
    const struct completion *completion;
    const struct arenas *arenas;
    /* nonces of the requests; the snapshot for the first is being made */
    uint64_t ask[SNAPSHOT_ASKS];
    unsigned asks;
    enum snapshot_step step;
    struct memfd out; /* the memory that the front will get */
    struct snapshot_room room;
    uint8_t *copy; /* owned: a copy of the pool's tables */
    uint64_t copy_bytes, touched;
    struct pool_cursor cursor;
    struct snapshot_place *place; /* owned: a hash table with open addressing */
    uint64_t places;
    uint64_t last_serial; /* serial of the newest buffer at the time of the copy */
    bool failed;          /* an answer could not be sent */
};

void snapshot_init(struct snapshot_maker *m, uv_loop_t *loop, struct channel *channel,
                   const struct memory *memory, struct buffers *buffers,
                   const struct completion *completion, const struct arenas *arenas);
/* Answers with a W_SNAPSHOT, now or later, which may contain an error. Fails only if the answer
 * cannot be sent. */
int snapshot_ask(struct snapshot_maker *m, uint64_t nonce, bool detail, struct err *e);
/* Stops. Its memory is used until the loop has turned. */
void snapshot_finish(struct snapshot_maker *m);

#endif
