/*
 * Of spill.c alone: the copies that bring a buffer to the host, back and from one place on the
 * device to another, and the arena on the host. Thread: the loop's. Nothing here waits.
 */
#ifndef WORKER_SPILL_SPILL_COPY_H
#define WORKER_SPILL_SPILL_COPY_H

#include "daemon/worker/spill/spill_state.h"

struct pool_move;

int spill_arena_init(struct spill *s, struct err *e); /* some milliseconds */
/* Its memory is others' from now on. < 0: it stays; ERR_DEVICE_LOST: nobody knows. */
int spill_move_out(struct spill *s, struct buffer *b, struct err *e);
/* It has its piece. What cannot be brought is as before, and the piece goes. */
int spill_move_back(struct spill *s, struct buffer *b, struct err *e);
/* The pool wants it elsewhere (move.h): `spill` is a struct spill. All it held is in the order of
 * the service stream or past; what it leaves is others' after the copy. */
int spill_move_within(void *spill, struct pool_move *move, struct err *e);
void spill_forget(void *spill, struct buffer *b); /* a buffer_forget_fn */

#endif
