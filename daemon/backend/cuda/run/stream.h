/* Streams and markers, and their events. */
#ifndef BACKEND_CUDA_RUN_STREAM_H
#define BACKEND_CUDA_RUN_STREAM_H

#include "daemon/backend/cuda/driver/device.h"

#define CUDA_BLAMED_MAX 64 /* bytes of a kernel's name in an error, including the NUL */

struct backend_stream {
    struct backend_device *device;
    CUstream stream;
    CUstream bell; /* for callbacks, which would delay `stream`; NULL: none */
    /* recorded before the first command since the last marker; NULL: there was no command */
    CUevent begin;
    /* the last kernel that was launched since the last marker; "": none */
    char blamed[CUDA_BLAMED_MAX];
    /* state of libraries (library_….c); NULL before the first use */
    void *random;
    struct cuda_fft *fft;
};

struct backend_marker {
    struct backend_device *device;
    struct backend_stream *stream;
    CUevent begin;              /* owned; NULL if there were no commands */
    CUevent end;                /* owned */
    enum backend_state settled; /* RUNNING, DONE or FAILED once known */
    CUresult failure;           /* if FAILED */
    char blamed[CUDA_BLAMED_MAX];
};

/* Takes a free event of the device, or creates one. */
int cuda_event_take(struct backend_device *d, CUevent *ret_event, struct err *e);
void cuda_event_give(struct backend_device *d, CUevent event); /* NULL is accepted */

/* Returns rc. If rc is a fault, names `kernel` ("": none) in `e`. The name is that of a suspect,
 * because after a fault every call fails. */
int cuda_blame(const char *kernel, int rc, struct err *e);

/* To be called before each command: before the first since the last marker, records its begin
 * event. */
int cuda_stream_begin(struct backend_stream *s, struct err *e);

int cuda_mark(struct backend_stream *s, struct backend_marker **ret_marker, struct err *e);
int cuda_launch(struct backend_stream *s, struct backend_module *m, const char *entry,
                const struct backend_launch *launch, struct err *e);

#endif
