/*
 * The processes of clients on this host, watched by their pidfds: who is told learns at once that
 * one has ended, whoever else still holds its connection (a child of fork, say). Thread: the
 * loop's. Nothing blocks.
 */
#ifndef FRONT_CLIENTS_PROCESSES_H
#define FRONT_CLIENTS_PROCESSES_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "common/err.h"

struct processes;

/* The process of `who` has ended. The receiver forgets its pidfd, at once. */
typedef void (*process_fn)(void *data, void *who);

int processes_create(uv_loop_t *loop, process_fn ended, void *data, struct processes **ret_p,
                     struct err *e);
/* Memory goes when the loop has turned. NULL is accepted, here and below. */
void processes_destroy(struct processes *p);
/* The pidfd stays the caller's. Without memory for it in the kernel it is not watched. */
void processes_watch(struct processes *p, int pidfd, void *who);
void processes_forget(struct processes *p, int pidfd); /* before it is closed */

/* Is it ending, or over and not reaped? What it closed by then it has not closed by a wish of its
 * own. Where the kernel does not tell: yes. */
bool process_ends(pid_t pid);

#endif
