/*
 * The one device of this worker: opened, checked by a copy there and back, with its streams and
 * its memory pool. Thread: the loop's.
 */
#ifndef WORKER_MEMORY_DEVICE_H
#define WORKER_MEMORY_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "daemon/backend/backend.h"
#include "daemon/worker/memory/memory.h"

/* for jobs; the pool knows those for service and for copies, too */
#define DEVICE_STREAMS_MAX (POOL_STREAMS - 2)

struct device_options {
    const char *backend;
    unsigned index;
    const char *options;    /* the back end's own, may be "" */
    uint64_t memory_limit;  /* bytes, 0 = what the device has less a reserve */
    uint64_t managed_limit; /* bytes of managed memory; 0 = none */
    uint64_t spill_limit;   /* bytes of host memory for buffers that find no room; 0 = none */
    unsigned streams;       /* 0 = what the device suggests */
    backend_wake_fn wake;
    void *wake_data;
};

struct device {
    const struct backend *b;
    struct backend_device *d; /* owned */
    struct backend_info info;
    unsigned count; /* devices of the back end, 0: it does not say */
    struct memory memory;
    struct backend_stream *stream[DEVICE_STREAMS_MAX]; /* for jobs */
    unsigned stream_count;
    unsigned urgent;                /* the last so many of them are of a higher priority */
    struct backend_stream *service; /* for zeroing, sealing and restoring buffers */
    struct backend_stream *scrub;   /* for zeroing new memory */
    struct backend_stream *lane[2]; /* for large copies to the device and from it */
    bool wakes;
};

/* Blocks (some 100 ms). After a failure the process is to end: commands may still run. */
int device_open(struct device *dev, const struct device_options *options, struct err *e);
void device_close(struct device *dev); /* idle; closing one that is not open is allowed */

/* Enqueues a marker at the end of a stream and starts what was enqueued. */
int device_mark(struct device *dev, struct backend_stream *s, struct backend_marker **ret_marker,
                struct err *e);
/* The device calls when the marker is passed; where it cannot, the pump's timer asks. */
void device_tell(const struct device *dev, struct backend_marker *marker);
/* A marker at the end of the service stream, which is on the memory's timeline then.
 * ERR_DEVICE_LOST: what was enqueued has no end that could be waited for. */
int device_mark_service(struct device *dev, struct backend_marker **ret_marker,
                        struct timeline_point *ret_point, struct err *e);
/* Is the stream one for what is urgent? As a priority: 1 or 0. */
int device_is_urgent(const struct device *dev, unsigned stream);
/* Is nothing more to be expected of this process after such an error? */
bool device_is_lost(int code);

#endif
