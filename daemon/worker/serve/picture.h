/*
 * Pictures of the pool for the front (proto/picture.h). Numbers alone are answered at once. With
 * pieces and events it is done in small steps of the loop, so that jobs go on meanwhile: memory for
 * the copy is touched, the pool's tables are copied (the one moment when it stands still), buffers
 * are gone through for who has what, then the copy is read piece by piece. A buffer that is freed
 * or moved before its turn comes has no name. Thread: the loop's.
 */
#ifndef WORKER_SERVE_PICTURE_H
#define WORKER_SERVE_PICTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/memfd.h"
#include "daemon/worker/memory/arenas.h"
#include "daemon/worker/run/completion.h"
#include "daemon/worker/serve/channel.h"
#include "proto/picture.h"

#define PICTURE_ASKS 16u /* that wait; more are refused */

enum picture_step { PICTURE_IDLE, PICTURE_TOUCH, PICTURE_NAMES, PICTURE_WALK };

struct picture_place; /* which buffer or job has a piece */

struct picture_maker {
    uv_idle_t idle;
    struct channel *channel; /* not owned, as the next four */
    const struct memory *memory;
    struct buffers *buffers;
    const struct completion *completion;
    const struct arenas *arenas;
    uint64_t ask[PICTURE_ASKS]; /* nonces, the first one is in the making */
    unsigned asks;
    enum picture_step step;
    struct memfd out; /* where it is written */
    struct picture_room room;
    uint8_t *copy; /* owned: the pool's snapshot */
    uint64_t copy_bytes, touched;
    struct pool_cursor cursor;
    struct picture_place *place; /* owned: open addressing, a power of two of them */
    uint64_t places;
    uint64_t last_serial; /* of the buffers that were there when the copy was made */
    bool failed;          /* the channel would not take an answer */
};

void picture_init(struct picture_maker *m, uv_loop_t *loop, struct channel *channel,
                  const struct memory *memory, struct buffers *buffers,
                  const struct completion *completion, const struct arenas *arenas);
/* Answers with a W_PICTURE now or later, an error in it if need be. ERR_* only if the channel does
 * not take it. */
int picture_ask(struct picture_maker *m, uint64_t nonce, bool detail, struct err *e);
/* Stops; memory may go when the loop has turned. */
void picture_finish(struct picture_maker *m);

#endif
