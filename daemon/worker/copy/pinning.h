/*
 * Registers staging memory with the device while the worker already serves, because a driver takes
 * as long to pin some hundred MiB as the rest of the start takes. Until then copies go through
 * other registered memory (copies.h); if the device refuses, they always do.
 *
 * One thread of libuv's registers one side after the other. Its result is used when both are done.
 * Thread: the loop's.
 */
#ifndef WORKER_COPY_PINNING_H
#define WORKER_COPY_PINNING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/clock.h"
#include "common/memfd.h"
#include "daemon/worker/copy/staging.h"
#include "daemon/worker/memory/device.h"

#define PINNING_SIDES    2u              /* input, output */
#define PINNING_BRIEF_NS (5 * NS_PER_MS) /* the longest that pinning_start waits */

struct pinning {
    uv_work_t work;
    struct device *device;
    struct staging *staging;
    uint64_t begin_ns;
    bool busy; /* until the thread's result is used */
    /* used by the thread alone until `ended` is set */
    atomic_bool ended;
    uint64_t took_ns;
    void *found[PINNING_SIDES]; /* registered addresses; NULL: not registered */
    struct memfd writable;      /* the input memory, mapped for writing too */
};

/* Begins, and blocks for at most PINNING_BRIEF_NS without running the loop, because no event may
 * be served before W_READY. With a back end that registers nothing all staging memory counts as
 * registered at once. `p` is in use until pinning_finish. */
void pinning_start(struct pinning *p, struct device *device, struct staging *staging,
                   uv_loop_t *loop);
/* Is the thread at work? Not started is allowed. */
bool pinning_busy(const struct pinning *p);
/* Not busy, and nothing is in flight; not started is allowed. */
void pinning_finish(struct pinning *p);

#endif
