/*
 * Descriptors that are kept back from peers who only connect, so that what keeps the daemon going
 * (a worker's channel, a new launcher) always finds some. The system gives out the lowest free
 * number: one among the highest tells that all others are taken.
 *
 * Thread: any. None blocks. Errors: none; a limit that cannot be read keeps nothing back.
 */
#ifndef COMMON_DESCRIPTORS_H
#define COMMON_DESCRIPTORS_H

#include <stdbool.h>

#define DESCRIPTORS_MAX  65536u /* of a process, whatever its hard limit is */
#define DESCRIPTORS_KEPT 256u   /* of them kept back; a quarter where there are few */

/* Takes as many as there may be. */
void descriptors_init(void);
/* Whether this one is of those kept back: who can do without it closes it. */
bool descriptors_kept(int fd);
/* Whether there are any but those kept back. */
bool descriptors_left(void);
/* Closes it, where there is one, and leaves -1. */
void descriptor_close(int *fd);

#endif
