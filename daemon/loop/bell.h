/*
 * A doorbell on a loop: an eventfd that is watched by its edges. One call answers all rings since
 * the last, and nothing has to be read, which saves a system call. Thread: the loop's.
 */
#ifndef LOOP_BELL_H
#define LOOP_BELL_H

#include <uv.h>

#include "common/err.h"

struct bell;

/* events: UV_READABLE for an eventfd that is rung by writes, UV_WRITABLE for one of
 * common/doorbell.h, which calls once for the start. The descriptor is the caller's and open
 * until bell_destroy. It is neither read nor written here, so a process that shares it cannot block
 * the loop. A ring from before counts; the first may count twice. */
int bell_create(uv_loop_t *loop, int fd, int events, void (*rung)(void *data), void *data,
                struct bell **ret_bell, struct err *e);
/* No call comes any more, and the descriptor may be closed. Memory is freed in the loop's next
 * turn. NULL is accepted. */
void bell_destroy(struct bell *b);

#endif
