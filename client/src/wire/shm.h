/*
 * Exchanges a nonce for descriptors over the daemon's local socket (PROTOCOL.md, "Shared memory").
 * Thread: any; no lock is needed.
 */
#ifndef CLIENT_WIRE_SHM_H
#define CLIENT_WIRE_SHM_H

#include "client/src/wire/conn.h"
#include "common/err.h"
#include "common/seqpacket.h"
#include "proto/messages.h"

/* The socket for descriptors, as seen from here. A daemon names it by the path that the daemon has.
 * In a container, the directory or the pair of sockets may be mounted elsewhere: then it is the one
 * beside the socket that `address` leads to. path: from WELCOME, replaced in that case. */
void shm_find(char path[PROTO_SOCKET_MAX + 1], const struct address *address);
/* Connects, sends the CLAIM and receives the descriptors. Blocks, at most until the deadline. path:
 * of shm_find; UNSUPPORTED if it is empty, or leads nowhere (a daemon in another
 * container). given (may be NULL): descriptors to send; they remain the caller's. want: the number
 * of descriptors that must arrive; they are close-on-exec and belong to the caller. Another number
 * is an error, and all are closed. While the daemon has too many connections, the claim is retried
 * until the deadline (BUSY). CONNECT, TIMEOUT, and the daemon's refusals. */
int shm_claim(const char *path, struct bytes nonce, const struct frame_fds *given, int want,
              uint64_t deadline_ns, struct frame_fds *ret_fds, struct err *e);
/* Sends the CLAIM only, over a socket that the caller connected. Does not block. BUSY. */
int shm_show(int fd, struct bytes nonce, const struct frame_fds *given, struct err *e);

#endif
