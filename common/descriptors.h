/*
 * Reserved descriptors: connections cannot use them, so that a worker's channel and a new launcher
 * always get one. The system returns the lowest free number, so a number among the highest means
 * that all others are in use.
 *
 * Thread: any. Nothing blocks unless its comment says so. Errors: none; if the limit cannot be
 * read, no descriptor is reserved.
 */
#ifndef COMMON_DESCRIPTORS_H
#define COMMON_DESCRIPTORS_H

#include <stdbool.h>

#define DESCRIPTORS_MAX  65536u /* of a process, under any hard limit */
#define DESCRIPTORS_KEPT 256u   /* reserved; at most a quarter of the limit */
#define DESCRIPTORS_ROOM 256u   /* below those, for connections only; at most a quarter */

/* Opens /dev/null as each of the standard three descriptors that is closed. Otherwise the next file
 * that is opened would get that number, and receive output meant for stderr. Called first in main;
 * after a failure they remain closed. */
void descriptors_standard(void);
/* Raises the limit of open files to the hard limit, at most to DESCRIPTORS_MAX. */
void descriptors_init(void);
/* Whether `fd` is a reserved descriptor. A caller that can do without it closes it. */
bool descriptors_kept(int fd);
/* Whether any descriptor besides the reserved ones is free. */
bool descriptors_left(void);
/* The same without those for connections. For descriptors that outlive connections, such as a
 * sealed buffer's copy: connections remain possible. */
bool descriptors_spare(void);
/* Closes *fd unless it is -1, and sets it to -1. */
void descriptor_close(int *fd);
/* The same for a socket whose queue may contain descriptors that another process sent. Closing
 * those can take as long as their owner chose (SO_LINGER). This call does not wait for that, unless
 * the system has no close_range(2) or no thread. Blocks briefly, for a thread's start and end. That
 * thread has copies of all descriptors of the process, which end some time after this call: until
 * then the other side of a descriptor that the process closes meanwhile does not see it closed. */
void descriptor_close_at_once(int *fd);

#endif
