/*
 * A doorbell on a loop: an eventfd that is watched by its edges. One call answers all rings since
 * the last call, and nothing has to be read, which saves a system call. Thread: the loop's.
 */
#ifndef LOOP_BELL_H
#define LOOP_BELL_H

#include <uv.h>

#include "common/err.h"

struct bell;

/* events: UV_READABLE for an eventfd that is rung by writes, UV_WRITABLE for one of
 * common/doorbell.h, which causes one call at the start. The caller owns the descriptor and
 * keeps it open until bell_destroy. The bell neither reads nor writes it, so a process that
 * shares it cannot block the loop. A ring before the creation counts; the first ring may count
 * twice. */
int bell_create(uv_loop_t *loop, int fd, int events, void (*rung)(void *data), void *data,
                struct bell **ret_bell, struct err *e);
/* No call comes afterwards, and the descriptor may be closed. The memory is freed in the loop's
 * next turn. NULL is accepted. */
void bell_destroy(struct bell *b);

#endif
