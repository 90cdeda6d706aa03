/* Streams, markers, and the events of both. */
#ifndef BACKEND_CUDA_RUN_STREAM_H
#define BACKEND_CUDA_RUN_STREAM_H

#include "daemon/backend/cuda/driver/device.h"

#define CUDA_BLAMED_MAX 64 /* bytes of a kernel's name in an error, with the NUL */

struct backend_stream {
    struct backend_device *device;
    CUstream stream;
    CUstream bell; /* for callbacks, which would delay `stream`; NULL: none */
    CUevent begin; /* before the first command since the last marker; NULL: no command */
    char blamed[CUDA_BLAMED_MAX]; /* the last kernel launched since the last marker; "": none */
    /* state of libraries (library_….c); NULL before their first use */
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

/* Takes an event from the device's free ones, or gives it back. */
int cuda_event_take(struct backend_device *d, CUevent *ret_event, struct err *e);
void cuda_event_give(struct backend_device *d, CUevent event); /* NULL is accepted */

/* Returns rc, and names `kernel` ("": none) in `e` if rc is a fault. A poisoned context fails every
 * call, so the name is that of a suspect. */
int cuda_blame(const char *kernel, int rc, struct err *e);

/* Called before each command: the first since the last marker begins its span of time. */
int cuda_stream_begin(struct backend_stream *s, struct err *e);

int cuda_mark(struct backend_stream *s, struct backend_marker **ret_marker, struct err *e);
int cuda_launch(struct backend_stream *s, struct backend_module *m, const char *entry,
                const struct backend_launch *launch, struct err *e);

#endif
