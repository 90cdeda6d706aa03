/*
 * A doorbell between processes of which one need not trust the other: an eventfd that is rung by a
 * read.
 *
 * O_NONBLOCK is a flag of the open file, which both processes share. The other process can clear
 * it and fill the eventfd, and a write would block then. A read with RWF_NOWAIT blocks in no case
 * (Linux 5.8; a write has no such flag). It takes 1 from a count that begins at 2^63, and is an
 * edge of EPOLLOUT for a loop that watches (daemon/loop/bell.h, UV_WRITABLE). So nobody can ring a
 * bell out of its count, and a process that spoils one misses its own rings.
 *
 * Thread: any.
 */
#ifndef COMMON_DOORBELL_H
#define COMMON_DOORBELL_H

#include <stdbool.h>

#include "common/err.h"

/* The descriptor is the caller's, close-on-exec. ERR_IO: no descriptor, or this system has no reads
 * that never block. */
int doorbell_create(int *ret_fd, struct err *e);
/* Never blocks. */
void doorbell_ring(int fd);

/* An epoll set, the caller's, for a process that waits for rings without a loop. -1: no descriptor
 * or memory. A ring from before counts, and so does the start. */
int doorbell_listen(int fd);
/* Waits for a ring and takes it, at most timeout_ms (-1: no limit). false: no ring, or a signal. */
bool doorbell_wait(int set, int timeout_ms);

#endif
