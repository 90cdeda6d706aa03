/* For spill.c only: the copies that move a buffer to the host, back, and within the device; and
 * the arena on the host. Nothing here waits. Thread: the loop's. */
#ifndef WORKER_SPILL_SPILL_COPY_H
#define WORKER_SPILL_SPILL_COPY_H

#include "daemon/worker/spill/spill_state.h"

#define SPILL_CHUNK (UINT64_C(16) << 20) /* bytes by which the arena grows */

struct pool_move;

int spill_arena_init(struct spill *s, struct err *e); /* blocks for some milliseconds */
/* Evicts a buffer to the host. Others may use its memory from now on. < 0: it was not evicted.
 * ERR_DEVICE_LOST: it may be in either place. */
int spill_move_out(struct spill *s, struct buffer *b, struct err *e);
/* Fills a buffer that has got a new piece. On failure its content remains where it was, and the
 * piece is freed. */
int spill_move_back(struct spill *s, struct buffer *b, struct err *e);
/* The same for a piece that is being mapped: until it is, jobs wait and the buffer is not evicted.
 * If mapping fails the buffer is away again. */
int spill_move_back_later(struct spill *s, struct buffer *b, struct err *e);
/* Moves a buffer for the pool (move.h). All commands that use the buffer must be on the service
 * stream or over. Others may use its old memory behind the copy. */
int spill_move_within(void *spill, struct pool_move *move, struct err *e);
void spill_forget(void *spill, struct buffer *b); /* a buffer_forget_fn */

#endif
