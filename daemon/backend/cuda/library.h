/*
 * cuBLAS, cuFFT, cuRAND and CUB behind the names and signatures of the built-in operations: each is
 * opened when first needed, by its functions alone, and may be absent. Handles and plans belong to
 * a stream. What a library cannot do, or does not know, is ERR_UNSUPPORTED: the portable kernels
 * do it. Thread: the worker's.
 */
#ifndef BACKEND_CUDA_LIBRARY_H
#define BACKEND_CUDA_LIBRARY_H

#include "daemon/backend/cuda/stream.h"
#include "daemon/backend/cuda/toolkit.h"

/* A library: where it is, and once it is open its functions. One of each for the process. */
struct cuda_library {
    const char *name;         /* "cublas" */
    const char *const *files; /* the last one NULL */
    const char *advice;       /* what to install */
    bool tried, open;
    bool told; /* a failure stands in the log */
};

/* Opens it the first time; tells the log once where it is not there or lacks something. */
bool cuda_library_open(struct cuda_library *l, const struct toolkit_entry *entries, size_t count,
                       void *table);
/* 0, or ERR_UNSUPPORTED with the library's own number; the first one is told to the log. */
int cuda_library_check(struct cuda_library *l, int status, const char *call, struct err *e);

/* Arguments of a call; a size is one of the values behind its arguments. */
void *cuda_call_address(const struct backend_call *c, unsigned arg);
uint64_t cuda_call_u64(const struct backend_call *c, unsigned arg);
const void *cuda_call_value(const struct backend_call *c, unsigned arg);

/* One library's part: the operations that it serves, by name. */
struct cuda_served {
    const char *operation;
    int (*workspace)(struct backend_stream *s, const struct backend_call *c, uint64_t *ret_bytes,
                     struct err *e);
    int (*run)(struct backend_stream *s, const struct backend_call *c, CUdeviceptr workspace,
               uint64_t bytes, struct err *e);
};
struct cuda_library_part {
    const char *by;                           /* the option "libraries" names it so */
    const struct cuda_served *served;         /* ends with operation NULL */
    void (*finish)(struct backend_stream *s); /* gives up the stream's handle; it is idle */
};

extern const struct cuda_library_part cuda_blas, cuda_fft, cuda_rand, cuda_cub;
extern const struct backend_library_ops cuda_library_ops;
/* What a stream holds of libraries; called before it is destroyed. */
void cuda_library_finish(struct backend_stream *s);

#endif
