/*
 * The connection to the front: frames in, and out what is owed to it. There is no queue: what was
 * not sent yet is written at the children themselves, so a front that does not read costs nothing.
 * Thread: one. Never blocks (but for the start of a child).
 */
#ifndef LAUNCHER_FRONT_H
#define LAUNCHER_FRONT_H

#include <stdbool.h>

#include "common/hash.h"
#include "daemon/launcher/children.h"

struct programs {
    int worker; /* descriptors of the executables, opened at start */
    int compiler;
    int monitor;                         /* -1: it is not installed */
    char compiler_hash[HASH_TEXT_BYTES]; /* of what the descriptor leads to */
};

struct front {
    int fd; /* -1: no front is connected */
    bool greeted;
    bool owes_hello;
    bool owes_listed;
    uint64_t listed;
    bool wants_write; /* something is owed that did not fit */
    bool quit;        /* it asked for the end of all */
    const char *build;
    const char *journal; /* where children's output goes, NULL: to our stderr */
    struct programs programs;
    struct identity own;       /* this user */
    struct identity stranger;  /* the user of workers and compilers */
    struct children *children; /* not owned */
};

void front_init(struct front *f, struct children *children, const struct programs *programs,
                const char *build);
void front_accept(struct front *f, int fd); /* takes the descriptor; there must be none */
/* Serves what arrived. < 0: the connection is to be closed, `e` says why (ERR_CLOSED: it ended). */
int front_read(struct front *f, struct err *e);
/* Sends what is owed; the same result. */
int front_flush(struct front *f, struct err *e);
void front_close(struct front *f); /* children that are only owed are forgotten */

#endif
