/*
 * A doorbell between two processes, one of which need not trust the other: an eventfd that is rung
 * by a read.
 *
 * O_NONBLOCK is a flag of the open file, which both processes share. The other process can clear
 * it and fill the eventfd, so that a write would block. A read with RWF_NOWAIT never blocks (Linux
 * 5.8; a write has no such flag). It takes 1 from a count that starts at 2^63, and a watching loop
 * sees it as an edge of EPOLLOUT (daemon/loop/bell.h, UV_WRITABLE). The count never runs out. A
 * process that corrupts its own bell misses only its own rings.
 *
 * Thread: any.
 */
#ifndef COMMON_DOORBELL_H
#define COMMON_DOORBELL_H

#include <stdbool.h>

#include "common/err.h"

/* The descriptor is the caller's, close-on-exec. ERR_IO: no descriptor, or the system does not have
 * RWF_NOWAIT for an eventfd. */
int doorbell_create(int *ret_fd, struct err *e);
/* Never blocks. */
void doorbell_ring(int fd);

/* An epoll set, the caller's, for a process that waits for rings without a loop. -1: no descriptor
 * or memory. The first wait returns at once, so an earlier ring is not lost. */
int doorbell_listen(int fd);
/* Waits for a ring and consumes it, at most timeout_ms (-1: no limit). false: no ring, or a signal.
 */
bool doorbell_wait(int set, int timeout_ms);

#endif
