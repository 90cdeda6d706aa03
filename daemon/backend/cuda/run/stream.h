/* A stream, the markers in it, and the events that both are made of. */
#ifndef BACKEND_CUDA_RUN_STREAM_H
#define BACKEND_CUDA_RUN_STREAM_H

#include "daemon/backend/cuda/driver/device.h"

#define CUDA_BLAMED_MAX 64 /* bytes of a kernel's name in an error */

struct backend_stream {
    struct backend_device *device;
    CUstream stream;
    CUstream bell;                /* for callbacks, so that none holds up `stream`; NULL: none */
    CUevent begin;                /* before the first command since the last marker, or NULL */
    char blamed[CUDA_BLAMED_MAX]; /* the kernel launched last since then, or "" */
    /* what libraries keep for it (library_….c); NULL before they are used */
    void *random;
    struct cuda_fft *fft;
};

struct backend_marker {
    struct backend_device *device;
    struct backend_stream *stream;
    CUevent begin;              /* owned; NULL if there were no commands */
    CUevent end;                /* owned */
    enum backend_state settled; /* RUNNING, DONE or FAILED once known */
    CUresult failure;           /* where FAILED */
    char blamed[CUDA_BLAMED_MAX];
};

/* Events come from those that the device keeps, and go back to them. */
int cuda_event_take(struct backend_device *d, CUevent *ret_event, struct err *e);
void cuda_event_give(struct backend_device *d, CUevent event); /* NULL is accepted */

/* rc, with `kernel` ("": none) named if it is a fault's. A poisoned context gives its error to
 * every call, whoever did it: so the name is that of a suspect. */
int cuda_blame(const char *kernel, int rc, struct err *e);

/* To be called before each command: the first one since the last marker begins a span of time. */
int cuda_stream_begin(struct backend_stream *s, struct err *e);

int cuda_mark(struct backend_stream *s, struct backend_marker **ret_marker, struct err *e);
int cuda_launch(struct backend_stream *s, struct backend_module *m, const char *entry,
                const struct backend_launch *launch, struct err *e);

#endif
