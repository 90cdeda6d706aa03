/*
 * The processes of clients on this host, watched by their pidfds. The end of a process is reported
 * at once, even if another process (a child, for example) still has its connection open. Thread:
 * the loop's. Nothing blocks.
 */
#ifndef FRONT_CLIENTS_PROCESSES_H
#define FRONT_CLIENTS_PROCESSES_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "common/err.h"

struct processes;

/* The process of `owner` has ended. The receiver calls processes_forget before it returns. */
typedef void (*process_fn)(void *data, void *owner);

int processes_create(uv_loop_t *loop, process_fn ended, void *data, struct processes **ret_p,
                     struct err *e);
/* Memory is freed when the loop has turned. NULL is accepted, here and below. */
void processes_destroy(struct processes *p);
/* The caller keeps the pidfd. Without memory in the kernel the process is not watched. */
void processes_watch(struct processes *p, int pidfd, void *owner);
void processes_forget(struct processes *p, int pidfd); /* before the pidfd is closed */

/* Is the process exiting, or a zombie? Then the kernel closed its descriptors, not the process
 * itself. Also true if the state is unknown. */
bool process_ends(pid_t pid);

/* Fields of a line of /proc/PID/stat, proc(5), counted from the end of the name, which may contain
 * anything. */
enum process_field {
    PROCESS_STATE = 1,
    PROCESS_FLAGS = 7,
    PROCESS_USER_TIME = 12,
    PROCESS_SYSTEM_TIME = 13,
};

/* Where the field begins; NULL: the line has fewer fields. */
const char *process_field(const char *line, enum process_field field);

#endif
