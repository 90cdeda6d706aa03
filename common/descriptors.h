/*
 * Descriptors that are reserved: connections cannot take them, so that a worker's channel and a new
 * launcher always find some. The system gives out the lowest free
 * number: one among the highest tells that all others are taken.
 *
 * Thread: any. None blocks, if nothing else is said. Errors: none; a limit that cannot be read
 * keeps nothing back.
 */
#ifndef COMMON_DESCRIPTORS_H
#define COMMON_DESCRIPTORS_H

#include <stdbool.h>

#define DESCRIPTORS_MAX  65536u /* of a process, whatever its hard limit is */
#define DESCRIPTORS_KEPT 256u   /* of them kept back; a quarter where there are few */
#define DESCRIPTORS_ROOM 256u   /* below those: for connections only; a quarter, too */

/* Opens /dev/null as each of the standard three that is closed, or what is opened next would be
 * written to as if it were that one. First in main; where it fails, they stay closed. */
void descriptors_standard(void);
/* Takes as many as there may be. */
void descriptors_init(void);
/* Whether it is a reserved one: a caller that can do without it closes it. */
bool descriptors_kept(int fd);
/* Whether there are any but those kept back. */
bool descriptors_left(void);
/* Whether there are any but those kept back and the room for connections. What stays without a
 * connection, as a sealed buffer's copy does, asks this: its owner can connect again. */
bool descriptors_spare(void);
/* Closes it, where there is one, and leaves -1. */
void descriptor_close(int *fd);
/* The same for one in which strangers may have left descriptors whose close waits for as long as
 * they wish (SO_LINGER): it does not wait for that, unless the system has no close_range(2) or no
 * thread can be had. Blocks for a thread's life, that is briefly. */
void descriptor_close_at_once(int *fd);

#endif
