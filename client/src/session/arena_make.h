/*
 * Makes arenas: requests them from the daemon, maps the memory, and keeps staging memory available.
 *
 * Thread: under the client's lock, which a function that blocks gives up meanwhile.
 */
#ifndef CLIENT_SESSION_ARENA_MAKE_H
#define CLIENT_SESSION_ARENA_MAKE_H

#include "client/src/objects/arena.h"

/* Makes an arena with its memory and adds it to the table. Blocks. */
int arena_make(struct gpud_client *c, enum arena_kind kind, uint64_t bytes, bool plain,
               uint64_t deadline_ns, struct arena **ret_arena, struct err *e);
/* Makes an arena of a memfd of the user, which is duplicated. Checks only that it can be mapped;
 * the daemon checks the rest. ret_bytes: NULL is allowed. Blocks. */
int arena_import(struct gpud_client *c, int memfd, void **ret_memory, size_t *ret_bytes,
                 struct err *e);
/* Frees the unused arenas of which no more pieces are allocated. */
void arena_closed_give_up(struct gpud_client *c);
/* Makes `bytes` of staging memory available, if possible. A failure is no error. Blocks without the
 * lock. */
void arena_stage_prepare(struct gpud_client *c, uint64_t bytes, uint64_t deadline_ns);
/* arena_stage_prepare for an array that found no staging memory in a submission, which must not
 * block. */
void arena_stage_wished(struct gpud_client *c);

#endif
