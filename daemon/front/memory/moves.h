/*
 * Buffers move to another device for a job that runs there (sched/placing.h). Its worker copies the
 * buffer to the host (workers/evacuate.h), unless the host has the content already, and the worker
 * of the other device takes it from there. Only then the buffer is on the other device, and the
 * first worker frees it. Whatever fails before, the buffer is where it was.
 *
 * A buffer is on the device of the first job in its line (sched/hazard.h), so jobs never wait for
 * each other in a circle. While jobs use it in flight, it stays; while it moves, no job gets it.
 *
 * Thread: the loop's. Nothing blocks.
 */
#ifndef FRONT_MEMORY_MOVES_H
#define FRONT_MEMORY_MOVES_H

#include "daemon/front/model/front.h"

/* The hook buffer_need. Jobs that wait are offered again when the buffer has moved. 0: it moves, or
 * has to wait. ERR_LIMIT, ERR_NOMEM and others: it cannot move now, and the job fails. */
int move_need(struct front *f, struct buffer *b, struct device *to, struct err *e);
/* Its worker has answered for the copy (MOVE_COPIES). */
void move_copied(struct front *f, struct buffer *b, const struct err *e);
/* The worker of `to` has answered for the content (MOVE_ARRIVES). Returns whether the buffer is
 * there now. */
bool move_arrived(struct front *f, struct buffer *b, struct device *to, const struct err *e);
/* The buffer is lost or freed: it does not move any more. It did not: nothing happens. */
void move_cancel(struct front *f, struct buffer *b);
/* The worker of the device has ended. */
void move_interrupted(struct front *f, struct buffer *b, const struct device *d);

#endif
