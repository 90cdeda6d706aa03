/*
 * Exported and managed buffers whose creation waits for device memory: others move to the host for
 * them, or move together. A buffer is in the table of buffers when it has its memory, so frames
 * that name it before are those of a buffer that the worker does not have, except F_BUFFER_FREE,
 * which ends the wait without an answer. The request is answered when the memory has come, or as
 * too large after CREATION_NS. No room is kept for it: others may take what becomes free. However
 * many wait for one tenant, those of others find a place.
 *
 * For a front that connects meanwhile, a buffer that is restored from its host copy is one that is
 * arriving. A new buffer without content is forgotten: its client asks that front again.
 *
 * Never blocks. Thread: the loop's.
 */
#ifndef WORKER_SERVE_CREATIONS_H
#define WORKER_SERVE_CREATIONS_H

#include "common/clock.h"
#include "common/memfd.h"
#include "daemon/worker/memory/buffers.h"

#define CREATIONS_MAX 256u           /* of a tenant */
#define CREATION_NS   (2 * NS_PER_S) /* how long one waits at most */

struct creation {
    struct buffer_ask ask; /* without a variable */
    struct buffer_clearing clearing;
    bool zero;
    bool unreported;   /* the inventory that is under way has still to name it */
    struct memfd host; /* owned: its content; MEMFD_NONE: it has none */
    uint64_t until_ns;
    uint64_t tried_ns;
    uint64_t changes; /* of the memory, after the last try */
    struct creation *prev, *next;
};

/* Creates the buffer if there is memory for it. BUFFER_LATER: memory is on its way. last: it does
 * not wait for that. */
typedef int (*creation_fn)(void *data, struct creation *x, bool last, struct err *e);
/* The buffer with this id was not created. */
typedef void (*creation_failed_fn)(void *data, uint64_t id, const struct err *why);

struct creations {
    struct creation *first;      /* owned: in the order of arrival */
    const struct memory *memory; /* not owned */
    creation_fn create;
    creation_failed_fn failed;
    void *data;
};

void creations_init(struct creations *l, const struct memory *memory, creation_fn create,
                    creation_failed_fn failed, void *data);
/* Keeps a copy of *x, which was just tried, and takes its host copy over. now: ns. ERR_LIMIT,
 * ERR_NOMEM. */
int creations_add(struct creations *l, struct creation *x, uint64_t now, struct err *e);
/* Tries again those for which something has changed, and ends those whose time is over. */
void creations_poll(struct creations *l, uint64_t now);
struct creation *creations_find(const struct creations *l, uint64_t id); /* NULL: none */
void creations_end(struct creations *l, struct creation *x);             /* frees it */
void creations_finish(struct creations *l);
/* Another front has connected: forgets what has no content, and marks the others as unreported. */
void creations_adopted(struct creations *l);
/* Does one wait for the next turn of the loop, in which more buffers move for it? */
bool creations_move(const struct creations *l);

#endif
