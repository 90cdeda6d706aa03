/* The commands of a stream as the driver's events, and the marker that gets them. */
#ifndef BACKEND_OPENCL_MARKER_H
#define BACKEND_OPENCL_MARKER_H

#include "daemon/backend/opencl/opencl.h"

struct opencl_event {
    cl_event event; /* owned */
    bool wait;      /* a barrier: its time does not count */
};

struct opencl_events {
    struct opencl_event *item; /* owned */
    unsigned count;
    unsigned capacity;
};

struct backend_marker {
    struct backend_device *device;
    struct opencl_events events; /* at least one; the last one completes last */
    uint64_t enqueued_ns;        /* when the last event was enqueued */
    enum backend_state settled;  /* DONE or FAILED once that is known, else PENDING */
    cl_int failure;              /* status of the failed event, if FAILED */
};

/* Makes a marker of `events`, at least one. On success it owns them, and `events` is empty.
 * enqueued_ns: the host's time just before the last event was enqueued. wakes: its end calls
 * wake(). */
int opencl_mark(struct backend_device *d, struct opencl_events *events, uint64_t enqueued_ns,
                bool wakes, struct backend_marker **ret_marker, struct err *e);
void opencl_events_finish(const struct opencl_api *cl, struct opencl_events *events);

#endif
