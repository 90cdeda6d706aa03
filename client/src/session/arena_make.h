/*
 * Makes arenas: asks the daemon for them, brings the memory here or there, keeps staging memory.
 *
 * Thread: under the client's lock, which a function that blocks gives up meanwhile.
 */
#ifndef CLIENT_SESSION_ARENA_MAKE_H
#define CLIENT_SESSION_ARENA_MAKE_H

#include "client/src/session/arena.h"

/* Memory with all that belongs to it, in the table. Blocks. */
int arena_make(struct gpud_client *c, enum arena_kind kind, uint64_t bytes, bool plain,
               uint64_t deadline_ns, struct arena **ret_arena, struct err *e);
/* An arena of a memfd of the user's, which is duplicated. Blocks. What does not fit is refused by
 * the daemon; here only what cannot be mapped. ret_bytes: NULL is fine. */
int arena_import(struct gpud_client *c, int memfd, void **ret_memory, size_t *ret_bytes,
                 struct err *e);
/* Gives up what another daemon did not take and nobody uses any more. */
void arena_dead_give_up(struct gpud_client *c);
/* Sees to it that so many bytes of staging memory are free, if that can be. Blocks without the
 * lock; failing is no error. */
void arena_stage_prepare(struct gpud_client *c, uint64_t bytes, uint64_t deadline_ns);
/* arena_stage_prepare for an array that found no staging memory when a job was submitted, which
 * must not block. */
void arena_stage_wished(struct gpud_client *c);

#endif
