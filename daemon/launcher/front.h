/*
 * The connection to the front: frames in, and owed frames out. There is no queue: each child
 * records the frames that are owed about it, so a front that does not read costs no memory. Never
 * blocks, except while a child starts. Thread: one.
 */
#ifndef LAUNCHER_FRONT_H
#define LAUNCHER_FRONT_H

#include <stdbool.h>

#include "common/hash.h"
#include "daemon/launcher/children.h"
#include "daemon/launcher/workers.h"

struct programs {
    int worker; /* descriptors of the executables, opened at start */
    int compiler;
    int monitor;                         /* -1: not installed */
    char compiler_hash[HASH_TEXT_BYTES]; /* hash of the compiler's executable */
};

struct front {
    int fd; /* -1: no front is connected */
    bool greeted;
    bool owes_hello;
    bool owes_listed;
    bool owes_copies;
    uint32_t copies_cursor; /* of those that were sent */
    uint64_t listed;
    bool wants_write; /* an owed frame did not fit into the socket */
    bool quit;        /* the front asked the launcher to end */
    const char *build;
    uint64_t lineage; /* the launcher's number */
    struct programs programs;
    struct identity own;      /* the launcher's user */
    struct identity stranger; /* the user for compilers, and for workers without a pool of users */
    struct workers workers;
    struct children *children; /* not owned */
};

/* Draws the launcher's number. ERR_IO: no random bytes. */
int front_init(struct front *f, struct children *children, const struct programs *programs,
               const char *build, struct err *e);
/* takes over the descriptor; no front may be connected */
void front_accept(struct front *f, int fd);
/* Serves the frames that have arrived. < 0: the caller has to close the connection (ERR_CLOSED:
 * the front ended). */
int front_read(struct front *f, struct err *e);
/* Sends owed frames. Errors as for front_read. */
int front_flush(struct front *f, struct err *e);
/* forgets children that have ended, and kills all others except workers and prepared ones */
void front_close(struct front *f);

#endif
