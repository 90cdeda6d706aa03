/*
 * Starts a child process and notes in its entry what came of it. Blocks as spawn_process does.
 * Thread: one.
 */
#ifndef LAUNCHER_LAUNCH_H
#define LAUNCHER_LAUNCH_H

#include "daemon/launcher/children.h"
#include "daemon/launcher/spawn.h"
#include "proto/frames.h"

/* Gives the program `args`, then the words of `more` (NULL-terminated; NULL: none). s: without
 * arguments, identity and journal. journal: as in struct spawn. Owes L_STARTED. A failed start is
 * no error of the connection: `code` and `text` of the child have it. */
void launch(struct child *child, struct spawn s, struct proto_list args, const char *const *more,
            const char *journal);

#endif
