/* The one device of this worker: opening it, its streams and its memory pool. Opening it
 * includes a check, a copy to the device and back. Thread: the loop's. */
#ifndef WORKER_MEMORY_DEVICE_H
#define WORKER_MEMORY_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "daemon/backend/backend.h"
#include "daemon/worker/memory/places.h"

/* Limit of streams for jobs. The pool also counts the service stream and the one for copies to
 * the device. */
#define DEVICE_STREAMS_MAX (POOL_STREAMS - 2)

struct device_options {
    const char *backend;
    const struct backend *through; /* the back end itself; NULL: the one of that name */
    unsigned index;
    const char *options;    /* the back end's own options, may be "" */
    uint64_t memory_limit;  /* bytes, at most the device's memory; 0: 15/16 of it */
    uint64_t managed_limit; /* bytes of managed memory; 0: none */
    uint64_t spill_limit;   /* bytes of host memory for evicted buffers; 0: none */
    unsigned streams;       /* streams for jobs; 0: the device's suggestion */
    backend_wake_fn wake;
    void *wake_data;
    bool maps_later; /* memory is mapped on a thread, which calls `wake` */
};

struct device {
    const struct backend *b;
    struct backend_device *d; /* owned */
    struct backend_info info;
    unsigned count; /* devices of the back end; 0: unknown */
    struct memory memory;
    struct places places;                              /* of programs, in `memory` */
    struct backend_stream *stream[DEVICE_STREAMS_MAX]; /* streams of jobs */
    unsigned stream_count;
    /* number of urgent streams, which have a higher priority; they come last in `stream` */
    unsigned urgent;
    struct backend_stream *service;        /* zeroes buffers, and moves them outside jobs */
    struct backend_stream *scrub;          /* zeroes memory that is new from the driver */
    struct backend_stream *copy_stream[2]; /* large copies, by enum copy_direction */
    bool wakes;
};

/* Blocks for some 100 ms. After a failure the process has to end, because commands may still
 * run. */
int device_open(struct device *dev, const struct device_options *options, struct err *e);
void device_close(struct device *dev); /* idle; not open is allowed */

/* Bytes of the pool where nothing limits it: 15/16 of the device's memory. */
uint64_t device_memory_default(const struct device *dev);
/* Enqueues a marker at the end of a stream and starts what was enqueued. */
int device_mark(struct device *dev, struct backend_stream *s, struct backend_marker **ret_marker,
                struct err *e);
/* Asks the device to call when it passes the marker. If it cannot, the pump finds out by its
 * timer. */
void device_arm(const struct device *dev, struct backend_marker *marker);
/* Enqueues a marker at the end of the service stream and adds it to the memory's timeline.
 * ERR_DEVICE_LOST: the end of what was enqueued can never be known. */
int device_mark_service(struct device *dev, struct backend_marker **ret_marker,
                        struct timeline_point *ret_point, struct err *e);
/* Priority of a stream for jobs: 1 for urgent jobs, else 0. */
int device_is_urgent(const struct device *dev, unsigned stream);
/* Does this error code mean that the process can no longer use the device? */
bool device_is_lost(int code);

#endif
