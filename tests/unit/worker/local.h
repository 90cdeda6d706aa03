/* A worker's memory in the test's own process: a device, its buffers and their way to the host. */
#ifndef TEST_WORKER_LOCAL_H
#define TEST_WORKER_LOCAL_H

#include <uv.h>

#include "daemon/worker/copy/copies.h"
#include "daemon/worker/spill/spill.h"

struct local {
    struct device device;
    struct buffers buffers;
    struct copies copies;
    struct transfers transfers;
    uv_loop_t loop; /* for the copies' threads */
    unsigned wakes; /* calls of the copies' wake */
    struct spill spill;
};

/* Two streams; `limit` bytes on the device, and `spill_limit` on the host. */
void local_start(struct local *t, const char *backend, const char *options, uint64_t limit,
                 uint64_t spill_limit);
/* Frees all buffers, too. The pool's books are checked before and after. */
void local_stop(struct local *t);
/* Waits until no buffer is on its way. */
void local_quiet(struct local *t);
/* Waits for the commands on a stream. */
void local_wait(struct local *t, struct backend_stream *s);

#endif
