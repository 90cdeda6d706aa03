/*
 * The processes that the launcher started, and the frames about each that it has not sent to the
 * front. Keeps duplicates of the front's descriptors of a worker, so that another front can take
 * the worker over. Thread: one. Fixed storage of CHILDREN_MAX; args and device on the heap.
 */
#ifndef LAUNCHER_CHILDREN_H
#define LAUNCHER_CHILDREN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/bytes.h"
#include "common/err.h"
#include "daemon/launcher/identity.h"

#define CHILDREN_MAX 256u

enum child_kind { CHILD_FREE = 0, CHILD_WORKER, CHILD_COMPILER, CHILD_MONITOR };

/* frames that are owed to the front, in this order */
enum child_owed { OWED_STARTED = 1, OWED_ENDED = 2, OWED_INVENTORY = 4 };

enum { CHILD_CHANNEL = 0, CHILD_INPUT = 1, CHILD_OUTPUT = 2, CHILD_RECORD = 3, CHILD_FDS = 4 };

struct child {
    enum child_kind kind;
    uint64_t id;                     /* of the front */
    pid_t pid;                       /* 0: ended, or never started */
    const struct identity *identity; /* user of the process */
    pid_t number;                    /* its pid; remains when it has ended */
    int fd[CHILD_FDS];  /* workers: the front's end of the channel, staging, record; -1: none */
    struct bytes frame; /* owned: the L_WORKER frame that asked for it */
    uint64_t kill_at;   /* ns; NS_NEVER: no limit of wall time */
    bool timed_out;
    int status; /* of waitpid */
    int code;   /* of the start; 0 or ERR_* */
    char text[ERR_TEXT_MAX];
    unsigned owed; /* enum child_owed */
};

struct children {
    struct child child[CHILDREN_MAX];
};

void children_init(struct children *c);
struct child *children_add(struct children *c, enum child_kind kind, uint64_t id); /* NULL: full */
struct child *children_find(struct children *c, uint64_t id); /* running ones only */
void child_remove(struct child *child);

/* Reaps ended children: kills the whole process group, and owes the frame L_ENDED. */
void children_reap(struct children *c);
void child_signal(const struct child *child, int signal); /* the whole group */
void children_signal(struct children *c, int signal);
unsigned children_running(const struct children *c);

/* Kills children that are over their wall time. Returns when to call again; NS_NEVER: no child has
 * a limit. */
uint64_t children_expire(struct children *c, uint64_t now);
/* The front has ended: drops all owed frames and ends all children but workers. */
void children_orphan(struct children *c);

#endif
