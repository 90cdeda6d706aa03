/* A stream's commands since its last marker, and the marker that takes them over. */
#ifndef BACKEND_OPENCL_STREAM_H
#define BACKEND_OPENCL_STREAM_H

#include "daemon/backend/opencl/opencl.h"

struct opencl_event {
    cl_event event; /* owned */
    bool wait;      /* a barrier: its time is not the commands' */
};

struct opencl_events {
    struct opencl_event *item; /* owned */
    unsigned count;
    unsigned capacity;
};

struct backend_stream {
    struct backend_device *device;
    cl_command_queue queue;
    struct opencl_events events;
    uint64_t enqueued_ns; /* host clock, just before the last command was enqueued */
    cl_event gate;        /* owned; commands behind it begin at flush; NULL: there is none */
};

struct backend_marker {
    struct backend_device *device;
    struct opencl_events events; /* at least one; the last one completes last */
    uint64_t enqueued_ns;        /* of the last event */
    enum backend_state settled;  /* DONE or FAILED once known, else PENDING */
    cl_int failure;              /* the event's status when FAILED */
};

/* Makes the marker of all that was enqueued since the last one. */
int opencl_mark(struct backend_stream *s, bool wakes, struct backend_marker **ret_marker,
                struct err *e);
void opencl_events_finish(const struct opencl_api *cl, struct opencl_events *events);

#endif
