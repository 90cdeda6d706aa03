/*
 * The interface of one library's file (struct cuda_library), and helpers for its calls: arguments
 * and failures. Thread: as library.h says.
 */
#ifndef BACKEND_CUDA_LIBRARY_LIBRARY_CALL_H
#define BACKEND_CUDA_LIBRARY_LIBRARY_CALL_H

#include <stdatomic.h>

#include "daemon/backend/cuda/driver/toolkit.h"
#include "daemon/backend/cuda/run/stream.h"

/* Bytes of data of a first small call; its workspace has as many and follows. */
#define CUDA_LIBRARY_SCRATCH (UINT64_C(1) << 20)

enum cuda_library_state {
    CUDA_LIBRARY_NEW = 0,
    CUDA_LIBRARY_READY,
    CUDA_LIBRARY_LATER,  /* present, but its preparation failed; it is tried again */
    CUDA_LIBRARY_FAILED, /* absent, or not allowed to serve */
};

/* A library and what it serves. One of each for the process. */
struct cuda_library {
    const char *name;                    /* "cublas"; the option "libraries" names it so */
    const char *const *files;            /* NULL-terminated */
    const char *advice;                  /* package to install */
    const struct toolkit_entry *entries; /* its functions, members of `table` */
    size_t entry_count;
    void *table;
    const char *const *kernels;    /* modules with one of these make it prepare; NULL-terminated */
    const char *const *operations; /* served by it; NULL-terminated */
    /* As backend_library_ops. */
    int (*workspace)(struct backend_stream *s, const struct backend_call *c, uint64_t *ret_bytes,
                     struct err *e);
    int (*run)(struct backend_stream *s, const struct backend_call *c, CUdeviceptr workspace,
               uint64_t bytes, struct err *e);
    /* In the thread that prepares: makes handles, and enqueues a first small call on
     * d->prepare_stream with d->scratch, without waiting for it. After a failure it may be called
     * again and continues. */
    int (*prepare)(struct backend_device *d, struct err *e);
    void (*finish)(struct backend_stream *s); /* NULL: nothing to do. `s` is idle */
    void (*close)(struct backend_device *d);  /* as finish, for the device; prepared or not */
    /* As backend_library_ops, once prepared; NULL: nothing to do. */
    void (*tidy)(struct backend_device *d);
    atomic_int state;  /* enum cuda_library_state: `table` may be used when it is READY */
    bool reported;     /* a failed call is in the log */
    unsigned failures; /* failed preparations, up to the longest pause */
    uint64_t again_ns; /* LATER: time of the next try */
};

extern struct cuda_library cuda_blas, cuda_fft, cuda_rand, cuda_cub;

/* The library serves no calls until it is prepared again, after a pause: memory may be free then.
 * Each pause is longer than the one before. In the thread that calls or prepares the library. */
void cuda_library_later(struct cuda_library *l);
/* A thread that reads the state sees all writes made before this call. */
void cuda_library_set(struct cuda_library *l, enum cuda_library_state state);
/* 0, or ERR_UNSUPPORTED with the library's status; the log has the first failure. */
int cuda_library_check(struct cuda_library *l, int status, const char *call, struct err *e);

/* Arguments of a call. Named sizes follow as u64 values. */
void *cuda_call_address(const struct backend_call *c, unsigned arg);
uint64_t cuda_call_u64(const struct backend_call *c, unsigned arg);
const void *cuda_call_value(const struct backend_call *c, unsigned arg);

#endif
