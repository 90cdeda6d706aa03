/*
 * The heartbeat: a thread that shows once a second that the process lives, whatever the loop does.
 * It writes to memory that it shares with the front, or sends W_BEAT on the channel's socket.
 * Frames are atomic, so the thread may send while the loop does. A descriptor of the thread's state
 * lets the front see why a beat stays out.
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
    int state_fd;               /* owned, of the thread's state (W_RINGS); -1: none */
    struct duplex_beat *shared; /* not owned, guarded by lock; NULL: beats are sent as frames */
    uint64_t count;
    uint64_t patience_ns; /* guarded by lock */
    bool begun;           /* guarded by lock: state_fd is set */
    bool send_now;        /* guarded by lock: the next beat must not wait */
    bool stop;
};

/* Blocks until the thread runs. */
int beat_start(struct beat *b, int fd, uint64_t patience_ns, struct err *e);
void beat_stop(struct beat *b);
/* Sends a beat at once, which announces how long the next one may take. 0: a second, as usual.
 * Any thread. */
void beat_patience(struct beat *b, uint64_t patience_ns);
/* Writes beats to `shared` from now on, the first at once; NULL: sends them again. After the
 * return the thread no longer uses the former memory. */
void beat_share(struct beat *b, struct duplex_beat *shared);

#endif
