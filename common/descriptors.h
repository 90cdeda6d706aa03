/*
 * Descriptors that are kept back from peers who only connect, so that what keeps the daemon going
 * (a worker's channel, a new launcher) always finds some. They lie between the process's soft limit
 * and its hard one: opening the reserve raises the soft limit for as long as it is open.
 *
 * Thread: the limit is the process's; one thread opens and closes. None blocks. Cost: two system
 * calls each.
 */
#ifndef COMMON_DESCRIPTORS_H
#define COMMON_DESCRIPTORS_H

#include <stdbool.h>

#define DESCRIPTORS_MAX  65536u /* of a process, whatever its hard limit is */
#define DESCRIPTORS_KEPT 256u   /* of them kept back; a quarter where there are few */

/* Takes as many as there may be, less what is kept back. */
void descriptors_init(void);
void descriptors_reserve_open(void);
void descriptors_reserve_close(void);
/* Whether there are any but those kept back. */
bool descriptors_left(void);

#endif
