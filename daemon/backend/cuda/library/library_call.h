/*
 * The interface of a library's source file (struct cuda_library), and helpers for its calls.
 * Thread: as library.h says.
 */
#ifndef BACKEND_CUDA_LIBRARY_LIBRARY_CALL_H
#define BACKEND_CUDA_LIBRARY_LIBRARY_CALL_H

#include <stdatomic.h>

#include "daemon/backend/cuda/driver/toolkit.h"
#include "daemon/backend/cuda/run/stream.h"

/* Bytes of data for a first small call; its workspace follows, with as many bytes. */
#define CUDA_LIBRARY_SCRATCH (UINT64_C(1) << 20)

enum cuda_library_state {
    CUDA_LIBRARY_NEW = 0,
    CUDA_LIBRARY_READY,
    CUDA_LIBRARY_LATER,  /* present, but its preparation failed and will be tried again */
    CUDA_LIBRARY_FAILED, /* absent, or not allowed to serve */
};

/* A library and what it serves. The process has one of each. */
struct cuda_library {
    const char *name;                    /* "cublas", as in the option "libraries" */
    const char *const *files;            /* NULL-terminated */
    const char *advice;                  /* which package to install */
    const struct toolkit_entry *entries; /* its functions, which are members of `table` */
    size_t entry_count;
    void *table;
    /* a module with one of these kernels makes it prepare; NULL-terminated */
    const char *const *kernels;
    const char *const *operations; /* the operations that it serves; NULL-terminated */
    /* As backend_library_ops. */
    int (*workspace)(struct backend_stream *s, const struct backend_call *c, uint64_t *ret_bytes,
                     struct err *e);
    int (*run)(struct backend_stream *s, const struct backend_call *c, CUdeviceptr workspace,
               uint64_t bytes, struct err *e);
    /* Makes handles, and enqueues a first small call on d->prepare_stream with d->scratch,
     * without waiting for it. Runs in the preparing thread. After a failure it may be called
     * again, and continues. */
    int (*prepare)(struct backend_device *d, struct err *e);
    void (*finish)(struct backend_stream *s); /* NULL: nothing to do. `s` is idle */
    /* like finish, for the device, which may not be prepared */
    void (*close)(struct backend_device *d);
    /* As backend_library_ops, if prepared; NULL: nothing to do. */
    void (*tidy)(struct backend_device *d);
    atomic_int state;  /* enum cuda_library_state; `table` may be used when READY */
    bool reported;     /* the log has a failed call */
    unsigned failures; /* count of failed preparations, up to the longest pause */
    uint64_t again_ns; /* LATER: ns, time of the next try */
};

extern struct cuda_library cuda_blas, cuda_fft, cuda_rand, cuda_cub;

/* Lets the library serve no calls until it is prepared again after a pause, because memory may
 * be free then. Each pause is longer than the one before. To be called by the thread that calls
 * or prepares the library. */
void cuda_library_later(struct cuda_library *l);
/* Sets the state. A thread that reads it sees all writes made before this call. */
void cuda_library_set(struct cuda_library *l, enum cuda_library_state state);
/* Returns 0, or ERR_UNSUPPORTED with the library's status. The first failure is logged. */
int cuda_library_check(struct cuda_library *l, int status, const char *call, struct err *e);

/* Arguments of a call. The named sizes follow the arguments as u64 values. */
void *cuda_call_address(const struct backend_call *c, unsigned arg);
uint64_t cuda_call_u64(const struct backend_call *c, unsigned arg);
const void *cuda_call_value(const struct backend_call *c, unsigned arg);

#endif
