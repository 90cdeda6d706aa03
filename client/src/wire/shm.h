/*
 * Taking what a nonce stands for: descriptors, over the daemon's local socket (PROTOCOL.md, "Shared
 * memory").
 * Thread: any; no lock is needed. Blocks, at most until the deadline.
 */
#ifndef CLIENT_WIRE_SHM_H
#define CLIENT_WIRE_SHM_H

#include "common/err.h"
#include "common/seqpacket.h"
#include "proto/messages.h"

/* path: as WELCOME told, may be empty: then it is UNSUPPORTED. given (may be NULL): descriptors
 * that go along; they stay the caller's. want: how many must come, close-on-exec and the caller's;
 * others are an error, and closed. UNSUPPORTED also if the path leads nowhere: a daemon in another
 * container. Where the daemon has too many connections it is tried again until the deadline: BUSY.
 * CONNECT, TIMEOUT, and what the daemon refuses. */
int shm_claim(const char *path, struct bytes nonce, const struct frame_fds *given, int want,
              uint64_t deadline_ns, struct frame_fds *ret_fds, struct err *e);
/* Its first half, for who has connected by itself: sends the CLAIM. Does not block. BUSY. */
int shm_show(int fd, struct bytes nonce, const struct frame_fds *given, struct err *e);

#endif
