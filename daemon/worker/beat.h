/*
 * The heartbeat: a thread of its own that sends W_BEAT once a second on the channel, whatever the
 * loop is doing. Frames are atomic, so two threads may send.
 */
#ifndef WORKER_BEAT_H
#define WORKER_BEAT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

struct beat {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int fd; /* not owned */
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

#endif
