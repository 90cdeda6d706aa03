/* Used by spill.c only: the copies that bring a buffer to the host, back, and from one place on the
 * device to another, and the arena on the host. Nothing here waits. Thread: the loop's. */
#ifndef WORKER_SPILL_SPILL_COPY_H
#define WORKER_SPILL_SPILL_COPY_H

#include "daemon/worker/spill/spill_state.h"

struct pool_move;

int spill_arena_init(struct spill *s, struct err *e); /* blocks for some milliseconds */
/* Moves a buffer to the host; others may use its memory from now on. < 0: it stays.
 * ERR_DEVICE_LOST: it may be in either place. */
int spill_move_out(struct spill *s, struct buffer *b, struct err *e);
/* Brings back a buffer that has its new piece. On failure its content stays where it was, and the
 * piece is freed. */
int spill_move_back(struct spill *s, struct buffer *b, struct err *e);
/* The pool moves it to another place (move.h). All commands that use it are on the service stream
 * or past. Its old memory is others' behind the copy. */
int spill_move_within(void *spill, struct pool_move *move, struct err *e);
void spill_forget(void *spill, struct buffer *b); /* a buffer_forget_fn */

#endif
