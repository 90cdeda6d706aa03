/*
 * Copies between the host's memory and the device's: a queue for each direction, on a stream of its
 * own. Large ones are cut into chunks, and no more than COPY_CHUNKS of them are under way at once,
 * so that what is urgent waits for a chunk or two and not for a bulk copy. Who is next: a copy's
 * rank is when it came less its priority's worth of waiting, so that nobody starves.
 *
 * Host memory that the device does not know (`registered` is false) is copied by way of memory that
 * it does know, two pieces in turn for each direction, by threads of libuv's: a driver would hold
 * up the caller for it. Of a back end that registers nothing all memory is as good as registered.
 *
 * Chunks of one direction pass in the order in which they were begun, so the last chunk's marker
 * stands for all of a copy. Thread: the loop's. Never blocks.
 */
#ifndef WORKER_COPY_COPIES_H
#define WORKER_COPY_COPIES_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/clock.h"
#include "common/err.h"
#include "daemon/worker/memory/device.h"

#define COPY_CHUNK    ((uint64_t)4 << 20) /* bytes */
#define COPY_CHUNKS   2u
#define COPY_LEVEL_NS ((int64_t)(50 * NS_PER_MS)) /* what a level of priority is worth */

enum copy_direction { COPY_TO_DEVICE, COPY_FROM_DEVICE };

struct copy {
    enum copy_direction direction;
    struct backend_ref ref;
    uint8_t *host; /* neither goes before done() */
    uint64_t size; /* > 0 */
    int priority;
    bool registered;
    /* Called once, from copies_poll: all is over (e->code 0) or what was begun is and no more
     * comes. After an error that means the loss of the device, commands may still run: memory
     * stays. */
    void (*done)(struct copy *c, const struct err *e);
    void *data;
    /* the queue's own; to be read */
    uint64_t begun;    /* bytes for which there are or were chunks */
    uint64_t enqueued; /* of these, those that are in the stream */
    struct backend_marker
        *last;                 /* once all are enqueued: their end; NULL again when it was passed */
    uint64_t begin_ns, end_ns; /* as the device tells */
    /* the queue's alone */
    unsigned chunks;
    int64_t rank;
    bool stopped;
    struct err e;
    struct copy *prev, *next;
};

enum chunk_state {
    CHUNK_FILLING,  /* its piece of registered memory is being filled */
    CHUNK_READY,    /* to be enqueued */
    CHUNK_FLYING,   /* on its way */
    CHUNK_EMPTYING, /* its piece is copied to where it belongs */
    CHUNK_OVER,
};

struct copy_chunk {
    struct lane *lane;
    struct copy *copy;
    uint64_t at, size;
    enum chunk_state state;
    struct backend_marker *marker;
    uint8_t *piece; /* registered memory; NULL: the copy's own is used */
    uv_work_t work;
};

struct lane {
    struct copies *copies;
    struct backend_stream *stream; /* the device's */
    struct copy *waiting;          /* not all begun; by rank */
    struct copy_chunk chunk[COPY_CHUNKS];
    unsigned first, count; /* a ring */
    uint8_t *piece[COPY_CHUNKS];
};

struct copies {
    struct device *device; /* not owned */
    uv_loop_t *loop;
    void (*wake)(void *data); /* something may have changed: copies_poll is to be called */
    void *wake_data;
    struct lane lane[2];
    struct copy *ended; /* whose done() is to be called */
    uint8_t *memory;    /* owned: the pieces; NULL: none are needed */
    unsigned count;     /* copies that are not done */
    bool fresh;         /* something was added since they were polled */
};

/* Blocks for some milliseconds where memory is registered. */
void copies_init(struct copies *c, struct device *device, uv_loop_t *loop, void (*wake)(void *),
                 void *wake_data);
void copies_finish(struct copies *c); /* idle; one that was not made is allowed */
/* The caller fills the upper part of `copy` and keeps it until done(). */
void copies_add(struct copies *c, struct copy *copy);
/* What is not begun is not begun any more; done() comes with `why` when the rest is over. */
void copies_stop(struct copies *c, struct copy *copy, const struct err *why);
void copies_poll(struct copies *c);
bool copy_enqueued(const struct copy *c);

#endif
