/*
 * The processes that the launcher started, and the frames about each that it still owes to the
 * front. Keeps duplicates of the front's descriptors of a worker, so that another front can adopt
 * the worker, and the record of an ended worker until its device has another one. Fixed storage for
 * CHILDREN_MAX children; their frames are on the heap. Thread: one.
 */
#ifndef LAUNCHER_CHILDREN_H
#define LAUNCHER_CHILDREN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/bytes.h"
#include "common/err.h"
#include "daemon/launcher/copies.h"
#include "daemon/launcher/identity.h"

#define CHILDREN_MAX 256u

enum child_kind { CHILD_FREE = 0, CHILD_WORKER, CHILD_COMPILER, CHILD_MONITOR, CHILD_PREPARED };

/* Frames that are owed to the front: started, inventory, ended are sent in this order. */
enum child_owed { OWED_STARTED = 1, OWED_ENDED = 2, OWED_INVENTORY = 4 };

enum { CHILD_CHANNEL = 0, CHILD_INPUT = 1, CHILD_OUTPUT = 2, CHILD_RECORD = 3, CHILD_FDS = 4 };

struct child {
    enum child_kind kind;
    uint64_t id;                     /* given by the front; 0: it does not know the child */
    pid_t pid;                       /* 0: it has ended, or was never started */
    const struct identity *identity; /* not owned: the user of the process */
    unsigned slot;                   /* of a worker, also of a prepared one: see slots.h */
    pid_t number;                    /* its pid, also after its end */
    /* of a worker: the front's end of the channel, staging memory, record; of a prepared one: that
     * end, and the launcher's end of the socket through which it gets its memory; -1: none */
    int fd[CHILD_FDS];
    /* of a worker, owned: the L_WORKER frame that asked for it, and its device, which L_DEVICE
     * replaces; of a prepared one: those of the worker that it may replace; else empty */
    struct bytes frame;
    struct bytes device;
    uint64_t kill_at;    /* ns; NS_NEVER: no limit of wall time */
    uint64_t prepare_at; /* ns: of a worker, when its successor is prepared; NS_NEVER: never */
    bool timed_out;
    int status; /* of waitpid */
    int code;   /* result of the start: 0 or ERR_* */
    char text[ERR_TEXT_MAX];
    unsigned owed; /* bits of enum child_owed */
};

struct children {
    struct child child[CHILDREN_MAX];
    struct copies copies; /* of buffers that records of ended workers name */
};

void children_init(struct children *c);
/* NULL: full. The oldest record of a worker that has ended makes room, once the front was told,
 * unless it has copies; not for a prepared worker. */
struct child *children_add(struct children *c, enum child_kind kind, uint64_t id);
/* Running ones that the front knows only. */
struct child *children_find(struct children *c, uint64_t id);
void child_remove(struct child *child);
/* Replaces one of a child's own byte strings by a copy. NOMEM: it stays. */
int child_keep(struct bytes *own, struct bytes from);
/* Whether it is a process of gpud-worker: a worker or a prepared one. */
bool child_works(const struct child *child);
/* An ended worker whose record is kept. */
bool child_departed(const struct child *child);
/* Forgets the child, which has ended, but for the record of a worker. */
void child_ended(struct child *child);
/* The device of this worker has its record now: forgets the device's ended workers, whose copies
 * are of this record. */
void children_replace(struct children *c, const struct child *worker);

/* Reaps ended children. Kills the rest of their process groups, and owes L_ENDED for each. */
void children_reap(struct children *c);
void child_signal(const struct child *child, int signal); /* signals its whole process group */
void children_signal(struct children *c, int signal);
unsigned children_running(const struct children *c);

/* Kills children that exceed their wall time. Returns when to call again; NS_NEVER: no child has
 * a limit. */
uint64_t children_expire(struct children *c, uint64_t now);
/* The front has ended: drops all owed frames, and kills all children except workers and prepared
 * ones. Records of ended workers stay. */
void children_orphan(struct children *c);

#endif
