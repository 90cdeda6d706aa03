/*
 * The processes that the launcher started, and what it still owes the front about each. Keeps
 * duplicates of the front's descriptors of a worker, so that another front can take it over.
 * Thread: one. Fixed storage of CHILDREN_MAX; args and meta on the heap.
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

/* frames that the front is to get, in this order */
enum child_owed { OWED_STARTED = 1, OWED_ENDED = 2, OWED_HELD = 4 };

enum { CHILD_CHANNEL = 0, CHILD_INPUT = 1, CHILD_OUTPUT = 2, CHILD_RECORD = 3, CHILD_FDS = 4 };

struct child {
    enum child_kind kind;
    uint64_t id;                     /* the front's */
    pid_t pid;                       /* 0: ended, or never started */
    const struct identity *identity; /* whose process it is */
    pid_t number;                    /* its pid, also when it has ended */
    int fd[CHILD_FDS];  /* workers: the front's end of the channel, staging, record; -1 */
    struct bytes frame; /* owned: the L_WORKER frame it was asked with */
    uint64_t kill_at;   /* ns; NS_NEVER: no limit of wall time */
    bool timed_out;
    int status; /* as waitpid gives it */
    int code;   /* of the start */
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

/* Reaps what ended: the whole process group is killed, the frame L_ENDED owed. */
void children_reap(struct children *c);
void child_signal(const struct child *child, int signal); /* the whole group */
void children_signal(struct children *c, int signal);
unsigned children_running(const struct children *c);

/* Kills what is over its wall time; when to come back, NS_NEVER if there is nothing to wait for. */
uint64_t children_expire(struct children *c, uint64_t now);
/* The front is gone: nothing is owed any more, workers go on, the others are ended. */
void children_orphan(struct children *c);

#endif
