/*
 * The connection to the front: frames in, and owed frames out. There is no queue: each child
 * records the frames it owes, so a front that does not read costs no memory. Thread: one. Never
 * blocks, except for the start of a child.
 */
#ifndef LAUNCHER_FRONT_H
#define LAUNCHER_FRONT_H

#include <stdbool.h>

#include "common/hash.h"
#include "daemon/launcher/children.h"

struct programs {
    int worker; /* descriptors of the executables, opened at start */
    int compiler;
    int monitor;                         /* -1: not installed */
    char compiler_hash[HASH_TEXT_BYTES]; /* of the compiler's file */
};

struct front {
    int fd; /* -1: no front is connected */
    bool greeted;
    bool owes_hello;
    bool owes_listed;
    uint64_t listed;
    bool wants_write; /* an owed frame found no room in the socket */
    bool quit;        /* the front asked for the end of all */
    const char *build;
    const char *journal; /* the journal's socket for children's output; NULL: this stderr */
    struct programs programs;
    struct identity own;       /* this user */
    struct identity stranger;  /* the user of workers and compilers */
    struct children *children; /* not owned */
};

void front_init(struct front *f, struct children *children, const struct programs *programs,
                const char *build);
void front_accept(struct front *f, int fd); /* takes the descriptor; there must be none */
/* Serves frames that arrived. < 0: the caller closes the connection (ERR_CLOSED: the front ended).
 */
int front_read(struct front *f, struct err *e);
/* Sends owed frames. Errors as front_read. */
int front_flush(struct front *f, struct err *e);
void front_close(struct front *f); /* forgets children that have ended */

#endif
