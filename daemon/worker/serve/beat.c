#include "daemon/worker/serve/beat.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>

#include "common/clock.h"
#include "common/descriptors.h"
#include "common/log.h"
#include "common/seqpacket.h"
#include "proto/codec.h"

#define BEAT_NS     NS_PER_S
#define FRAME_BYTES 256

/* A beat that does not fit into the socket is dropped: a front that does not read cannot miss
 * it. */
static void send_beat(int fd, uint64_t count, uint64_t patience_ns)
{
    struct msg_w_beat msg = {.count = count, .patience_ns = patience_ns};
    struct capbuf out;
    capbuf_init(&out, FRAME_BYTES);
    if (proto_encode(&schema_msg_w_beat, &msg, &out, NULL) == 0) {
        (void)seqpacket_send(fd, out.data, out.size, NULL, NULL);
    }
    capbuf_finish(&out);
}

/* The patience is written last, and read first: a front that sees a shorter patience also sees the
 * beat from which it counts. */
static void show_beat(struct duplex_beat *shared, uint64_t patience_ns)
{
    atomic_store(&shared->at_ns, clock_now_ns());
    atomic_store(&shared->patience_ns, patience_ns);
}

/* The caller has the lock, so that a beat is either written or sent. */
static void beat(struct beat *b)
{
    b->count++;
    if (b->shared != NULL) {
        show_beat(b->shared, b->patience_ns);
    } else {
        send_beat(b->fd, b->count, b->patience_ns);
    }
}

static struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
}

static void *run(void *data)
{
    struct beat *b = data;
    (void)pthread_mutex_lock(&b->lock);
    b->state_fd = open("/proc/thread-self/stat", O_RDONLY | O_CLOEXEC);
    b->begun = true;
    (void)pthread_cond_signal(&b->changed);
    while (!b->stop) {
        struct timespec next = timespec_of(clock_now_ns() + BEAT_NS);
        b->send_now = false;
        beat(b);
        log_tend();
        int rc = 0;
        while (!b->send_now && !b->stop && rc != ETIMEDOUT) {
            rc = pthread_cond_timedwait(&b->changed, &b->lock, &next);
        }
    }
    (void)pthread_mutex_unlock(&b->lock);
    return NULL;
}

int beat_start(struct beat *b, int fd, uint64_t patience_ns, struct err *e)
{
    pthread_condattr_t attr;
    *b = (struct beat){.fd = fd, .state_fd = -1, .patience_ns = patience_ns};
    bool ok = pthread_condattr_init(&attr) == 0 &&
              pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0 &&
              pthread_mutex_init(&b->lock, NULL) == 0 &&
              pthread_cond_init(&b->changed, &attr) == 0 &&
              pthread_create(&b->thread, NULL, run, b) == 0;
    if (!ok) {
        return err_set(e, ERR_NOMEM, "no memory for the heartbeat's thread");
    }
    (void)pthread_mutex_lock(&b->lock);
    while (!b->begun) {
        (void)pthread_cond_wait(&b->changed, &b->lock);
    }
    (void)pthread_mutex_unlock(&b->lock);
    return 0;
}

void beat_stop(struct beat *b)
{
    (void)pthread_mutex_lock(&b->lock);
    b->stop = true;
    (void)pthread_cond_signal(&b->changed);
    (void)pthread_mutex_unlock(&b->lock);
    (void)pthread_join(b->thread, NULL);
    (void)pthread_cond_destroy(&b->changed);
    (void)pthread_mutex_destroy(&b->lock);
    descriptor_close(&b->state_fd);
}

void beat_patience(struct beat *b, uint64_t patience_ns)
{
    (void)pthread_mutex_lock(&b->lock);
    b->patience_ns = patience_ns;
    b->send_now = true;
    (void)pthread_cond_signal(&b->changed);
    (void)pthread_mutex_unlock(&b->lock);
}

void beat_share(struct beat *b, struct duplex_beat *shared)
{
    (void)pthread_mutex_lock(&b->lock);
    b->shared = shared;
    if (shared != NULL) {
        show_beat(shared, b->patience_ns);
    }
    (void)pthread_mutex_unlock(&b->lock);
}
