/*
 * The back end's page table as a source of the pool (pool's source.h), and the clearing of memory
 * that is new. Calls are made at once, or later on a thread (mapper.h). Then mapping_poll() passes
 * what the thread reports on to the pool (pool's late.h).
 *
 * Thread: the loop's. Later: nothing blocks except mapping_drain and mapping_finish.
 */
#ifndef WORKER_MEMORY_MAPPING_H
#define WORKER_MEMORY_MAPPING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "daemon/backend/backend.h"
#include "daemon/pool/late.h"
#include "daemon/worker/memory/mapper.h"

/* Has the device no work of this worker? */
typedef bool (*mapping_quiet_fn)(void *data);

struct mapping {
    const struct backend *b;
    struct backend_device *d;
    struct backend_stream *scrub; /* not owned: zeroes new memory only */
    mapping_quiet_fn quiet;
    void *data;
    struct mapper *mapper;       /* owned; NULL: calls are made at once */
    struct backend_block *range; /* owned; NULL: none */
    struct pool *pool;           /* not owned; set once it is made */
    /* what the thread waits for: zeros up to the marker. marker NULL: it waits for nothing */
    struct backend_marker *marker;
    uint64_t marked_ns;
    struct mapper_report clearing;
    bool fails;     /* a call failed, and none was complete since: one line for a series */
    bool hung;      /* the end of zeros can never be known: the worker has to end */
    struct err why; /* the last failure; code 0: none */
};

/* wake NULL: calls are made at once. */
int mapping_init(struct mapping *m, backend_wake_fn wake, void *wake_data, struct err *e);
void mapping_finish(struct mapping *m); /* after the pool; not initialised is allowed */

int mapping_reserve(struct mapping *m, uint64_t bytes, void **ret_range, struct err *e);
void mapping_release(struct mapping *m); /* waits for the calls before it */
int mapping_create(struct mapping *m, uint64_t bytes, uint64_t *ret_handle, struct err *e);
void mapping_destroy(struct mapping *m, uint64_t handle, uint64_t bytes);
int mapping_map(struct mapping *m, uint64_t at, uint64_t handle, uint64_t bytes, struct err *e);
int mapping_unmap(struct mapping *m, uint64_t at, uint64_t bytes, struct err *e);
int mapping_access(struct mapping *m, uint64_t at, uint64_t bytes, struct err *e);
/* Zeroes new memory: now, or when it is mapped. ERR_LIMIT: it is to be zeroed by its users. */
int mapping_clear(struct mapping *m, void *block, uint64_t at, uint64_t bytes, struct err *e);

/* Passes reports on. Returns whether there were any. */
bool mapping_poll(struct mapping *m);
bool mapping_busy(const struct mapping *m); /* are there calls that are not complete? */
/* Sets e to why memory that was handed out could not be mapped. ERR_DEVICE_MEMORY. */
int mapping_refused(const struct mapping *m, struct err *e);
/* Waits until all calls are complete, for `ns` at most. */
void mapping_drain(struct mapping *m, uint64_t ns);

#endif
