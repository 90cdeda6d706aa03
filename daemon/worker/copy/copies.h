/*
 * Copies between host memory and device memory: a queue for each direction, on a stream of its own.
 * Large copies are cut into chunks, of which at most COPY_CHUNKS are under way in a direction. An
 * urgent copy thus waits for a chunk or two, not for a bulk copy. The rank of a copy is the time of
 * its arrival less a bonus for its priority, so no copy starves.
 *
 * Host memory that the device does not know (`registered` is false) is copied through registered
 * memory, because a driver would block the caller. There are two pieces of it for each direction,
 * and threads of libuv's fill and empty them. With a back end that registers nothing all memory
 * counts as registered.
 *
 * Chunks of one direction complete in the order in which they were begun, so the last chunk's
 * marker is the end of the whole copy. Never blocks. Thread: the loop's.
 */
#ifndef WORKER_COPY_COPIES_H
#define WORKER_COPY_COPIES_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/clock.h"
#include "common/err.h"
#include "daemon/worker/memory/device.h"

#define COPY_CHUNK  ((uint64_t)4 << 20) /* bytes */
#define COPY_CHUNKS 2u
/* ns of waiting that a level of priority is worth */
#define COPY_LEVEL_NS ((int64_t)(50 * NS_PER_MS))

enum copy_direction { COPY_TO_DEVICE, COPY_FROM_DEVICE };

struct copy {
    enum copy_direction direction;
    struct backend_ref ref;
    uint8_t *host; /* `ref` and `host` must stay valid until done() */
    uint64_t size; /* bytes, > 0 */
    int priority;
    bool registered;
    /* Called once, from copies_poll. e->code 0: all bytes are copied. Else no chunk is under way
     * and no more begin. After a loss of the device commands may still run: the memory must not
     * be freed. */
    void (*done)(struct copy *c, const struct err *e);
    void *data;
    /* set by the queue, for everybody to read */
    uint64_t begun;              /* bytes whose chunks were begun */
    uint64_t enqueued;           /* of these, bytes whose chunks are in the stream */
    struct backend_marker *last; /* end of the last chunk once all are enqueued; NULL before, and
                                    after it was passed */
    bool started;                /* the device was seen to have begun it */
    uint64_t begin_ns, end_ns;   /* ns on the host's clock; valid after done() */
    /* for the queue alone */
    unsigned chunks;
    int64_t rank;
    bool stopped;
    struct err e;
    struct copy *prev, *next;
};

enum chunk_state {
    CHUNK_FILLING,  /* a thread copies the host's bytes to the registered piece */
    CHUNK_READY,    /* it can be enqueued */
    CHUNK_FLYING,   /* in the stream */
    CHUNK_EMPTYING, /* a thread copies the registered piece to the host's memory */
    CHUNK_OVER,
};

struct copy_chunk {
    struct copy_queue *queue;
    struct copy *copy;
    uint64_t at, size;
    enum chunk_state state;
    struct backend_marker *marker;
    uint8_t *piece; /* registered memory that the chunk goes through; NULL: the copy's own memory */
    uv_work_t work;
};

struct copy_queue {
    struct copies *copies;
    struct backend_stream *stream; /* the device's */
    struct copy *waiting;          /* copies that have chunks to begin, by rank */
    struct copy_chunk chunk[COPY_CHUNKS];
    unsigned first, count; /* the chunks that were begun form a ring */
    uint8_t *piece[COPY_CHUNKS];
};

struct copies {
    struct device *device; /* not owned */
    uv_loop_t *loop;
    void (*wake)(void *data); /* asks for a call of copies_poll */
    void *wake_data;
    struct copy_queue queue[2];
    struct copy *ended; /* copies whose done() is to be called */
    uint8_t *memory;    /* owned: the registered pieces of both queues; NULL: none */
    unsigned count;     /* copies whose done() has not been called */
    bool fresh;         /* a copy was added since the last poll */
};

/* Blocks for some milliseconds, while memory is registered. */
void copies_init(struct copies *c, struct device *device, uv_loop_t *loop, void (*wake)(void *),
                 void *wake_data);
void copies_finish(struct copies *c); /* idle; not initialised is allowed */
/* The caller sets the members up to `data`, and keeps `copy` until done(). */
void copies_add(struct copies *c, struct copy *copy);
/* Begins no further chunk of the copy. done() reports `why` when the chunks under way are over. */
void copies_stop(struct copies *c, struct copy *copy, const struct err *why);
void copies_poll(struct copies *c);
bool copy_enqueued(const struct copy *c);

#endif
