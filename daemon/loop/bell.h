/*
 * A doorbell on a loop: an eventfd that is watched by its edges. Each ring calls once, however many
 * came meanwhile, and nothing has to be read: one system call less for each. So its count says
 * nothing: a caller that polls it by its level reads it first.
 * Thread: the loop's.
 */
#ifndef LOOP_BELL_H
#define LOOP_BELL_H

#include <uv.h>

#include "common/err.h"

struct bell;

/* The descriptor stays the caller's. It lives until bell_destroy, and is never read here: a process
 * that shares it cannot make that block. A ring from before counts; the first may count twice. */
int bell_create(uv_loop_t *loop, int fd, void (*rung)(void *data), void *data,
                struct bell **ret_bell, struct err *e);
/* Nothing is called any more, and the descriptor may be closed; memory is freed when the loop has
 * turned. NULL is accepted. */
void bell_destroy(struct bell *b);

#endif
