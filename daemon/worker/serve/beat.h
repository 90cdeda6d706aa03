/*
 * The heartbeat: a thread of its own that shows once a second that the process lives, whatever the
 * loop is doing: in memory that it shares with the front, or with W_BEAT on the channel's socket.
 * Frames are atomic, so two threads may send.
 */
#ifndef WORKER_SERVE_BEAT_H
#define WORKER_SERVE_BEAT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/duplex.h"
#include "common/err.h"

struct beat {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int fd;                     /* not owned */
    struct duplex_beat *shared; /* not owned, guarded by lock; NULL: beats are sent */
    uint64_t count;
    uint64_t patience_ns; /* guarded by lock */
    bool due;             /* send one now */
    bool stop;
};

int beat_start(struct beat *b, int fd, uint64_t patience_ns, struct err *e);
void beat_stop(struct beat *b);
/* How long the next beat may take; a beat that says so is sent at once. 0 = a second, as usual.
 * Any thread. */
void beat_patience(struct beat *b, uint64_t patience_ns);
/* Beats are written there from now on, at once for the first time; NULL: sent again. When it
 * returns, the thread uses nothing else. */
void beat_share(struct beat *b, struct duplex_beat *shared);

#endif
