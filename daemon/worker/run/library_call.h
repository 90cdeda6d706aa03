/* Translates a step of the front into a call of a vendor's library, and asks how much memory the
 * call needs. Thread: the loop's. */
#ifndef WORKER_RUN_LIBRARY_CALL_H
#define WORKER_RUN_LIBRARY_CALL_H

#include "daemon/worker/memory/device.h"
#include "proto/codec.h"

struct job;

struct library_call {
    struct backend_call call;
    struct backend_arg arg[PROTO_ARGS_MAX];
    char operation[PROTO_NAME_MAX * 2 + 1];
};

/* Finds the memory that a REF of a job names: job_ref. */
typedef struct backend_ref (*library_memory_fn)(struct job *j, const struct proto_ref *ref);

/* memory NULL: the call has no addresses, for a job without memory. Returns false if the
 * operation's name is too long. *ret_call points into itself and into the step's bytes. */
bool library_call_make(const struct proto_wstep *s, library_memory_fn memory, struct job *j,
                       struct library_call *ret_call);
/* Bytes of device memory that the call needs; 0: none, or no library serves the step. */
uint64_t library_workspace(const struct device *dev, unsigned stream, const struct proto_wstep *s);

#endif
