/*
 * What the file of one library has to give (struct cuda_library), and what it needs for calls:
 * their arguments, and the meaning of a failure. Thread: as library.h says.
 */
#ifndef BACKEND_CUDA_LIBRARY_LIBRARY_CALL_H
#define BACKEND_CUDA_LIBRARY_LIBRARY_CALL_H

#include <stdatomic.h>

#include "daemon/backend/cuda/driver/toolkit.h"
#include "daemon/backend/cuda/run/stream.h"

/* Bytes that a first small call may use: so much for its data, then as much workspace. */
#define CUDA_LIBRARY_SCRATCH (UINT64_C(1) << 20)

enum cuda_library_state {
    CUDA_LIBRARY_NEW = 0,
    CUDA_LIBRARY_READY,
    CUDA_LIBRARY_LATER,  /* it is there, and something that it needs was not */
    CUDA_LIBRARY_FAILED, /* it is not there, or may not serve */
};

/* A library: where it is and what it serves. One of each for the process. */
struct cuda_library {
    const char *name;                    /* "cublas"; the option "libraries" names it so */
    const char *const *files;            /* the last one NULL */
    const char *advice;                  /* what to install */
    const struct toolkit_entry *entries; /* of `table`, its functions */
    size_t entry_count;
    void *table;
    const char *const *kernels;    /* of modules that it is prepared for; the last one NULL */
    const char *const *operations; /* that it serves; the last one NULL */
    /* As backend_library_ops. */
    int (*workspace)(struct backend_stream *s, const struct backend_call *c, uint64_t *ret_bytes,
                     struct err *e);
    int (*run)(struct backend_stream *s, const struct backend_call *c, CUdeviceptr workspace,
               uint64_t bytes, struct err *e);
    /* In the thread that prepares: makes handles, and a first small call in d->aside on d->scratch,
     * which nobody waits for. After a failure it may come again, and goes on. */
    int (*prepare)(struct backend_device *d, struct err *e);
    void (*finish)(struct backend_stream *s); /* NULL: nothing to do. It is idle */
    void (*close)(struct backend_device *d);  /* the same for the device; prepared or not */
    /* As backend_library_ops, of what was prepared; NULL: nothing to do. */
    void (*tidy)(struct backend_device *d);
    atomic_int state;  /* enum cuda_library_state: `table` may be used when it is READY */
    bool told;         /* a failure stands in the log */
    unsigned failures; /* what was in vain, up to the longest pause */
    uint64_t again_ns; /* LATER: it is not tried before */
};

extern struct cuda_library cuda_blas, cuda_fft, cuda_rand, cuda_cub;

/* It serves nothing until it was prepared again, which is tried after a pause: what it lacked may
 * be there then. Each pause is longer than the one before. In the thread that calls the library, or
 * prepares it. */
void cuda_library_later(struct cuda_library *l);
/* A thread that reads the state then sees what was done before. */
void cuda_library_set(struct cuda_library *l, enum cuda_library_state state);
/* 0, or ERR_UNSUPPORTED with the library's own number; the first one is told to the log. */
int cuda_library_check(struct cuda_library *l, int status, const char *call, struct err *e);

/* Arguments of a call; a size is one of the values behind its arguments. */
void *cuda_call_address(const struct backend_call *c, unsigned arg);
uint64_t cuda_call_u64(const struct backend_call *c, unsigned arg);
const void *cuda_call_value(const struct backend_call *c, unsigned arg);

#endif
