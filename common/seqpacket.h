/*
 * Frames over SOCK_SEQPACKET, with descriptors. A frame arrives whole or not at all. Used between
 * front, launcher and workers. Never blocks: sockets are non-blocking.
 */
#ifndef COMMON_SEQPACKET_H
#define COMMON_SEQPACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define FRAME_MAX_BYTES (64u * 1024u) /* below the kernel's default send buffer of 208 KiB */
#define FRAME_MAX_FDS   8

struct frame_fds {
    int fd[FRAME_MAX_FDS];
    int count;
    bool lost; /* descriptors were sent, but found no room here; count is 0 */
};

/* A connected pair, non-blocking and close-on-exec. */
int seqpacket_pair(int ret_fd[2], struct err *e);
/* Listens on a path (mode 0600), which must not exist. The descriptor is non-blocking. */
int seqpacket_listen(const char *path, int *ret_fd, struct err *e);
int seqpacket_connect(const char *path, int *ret_fd, struct err *e);

/* Whether the other end is a process of this user or of root, as the kernel recorded it when that
 * process connected or began to listen. */
bool seqpacket_peer_trusted(int fd);

enum { SEQPACKET_AGAIN = 1, SEQPACKET_EOF = 2 };

/* 0 = sent, SEQPACKET_AGAIN = try when writable, < 0 = ERR_*. size: 1 to FRAME_MAX_BYTES. fds may
 * be NULL; they remain the caller's. */
int seqpacket_send(int fd, const void *data, size_t size, const struct frame_fds *fds,
                   struct err *e);
/* 0 = received, SEQPACKET_AGAIN, SEQPACKET_EOF, < 0 = ERR_* (a frame longer than `size` or with
 * more than FRAME_MAX_FDS descriptors is refused, and its descriptors are closed). Received
 * descriptors are close-on-exec and the caller's. */
int seqpacket_recv(int fd, void *data, size_t size, size_t *ret_size, struct frame_fds *ret_fds,
                   struct err *e);
/* As seqpacket_recv, but a frame whose descriptors find no room (limit of open files) is returned
 * without them, and `lost` is set. */
int seqpacket_recv_lossy(int fd, void *data, size_t size, size_t *ret_size,
                         struct frame_fds *ret_fds, struct err *e);
/* Closes all entries >= 0; an entry of -1 belongs to another owner. count is 0 then. */
void frame_fds_close(struct frame_fds *fds);

#endif
