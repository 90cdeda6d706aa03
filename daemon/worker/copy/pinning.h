/*
 * Staging memory becomes known to the device while the worker serves already: to pin some hundred
 * MiB takes a driver as long as the rest of a start. Until then its copies go by way of memory that
 * is known (copies.h), and so they do for ever where the device refuses.
 *
 * One side after the other, in one piece of work for a thread of libuv's; what it found is used
 * when both are done. Thread: the loop's.
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

#define PINNING_SIDES    2u                /* input, output */
#define PINNING_BRIEF_NS (200 * NS_PER_MS) /* what takes no longer is waited for */

struct pinning {
    uv_work_t work;
    struct device *device;
    struct staging *staging;
    uint64_t begin_ns;
    bool busy; /* until what the thread found is used */
    /* the thread's, until it has ended */
    atomic_bool ended;
    uint64_t took_ns;
    void *found[PINNING_SIDES]; /* registered; NULL: not */
    struct memfd writable;      /* the input, mapped anew */
};

/* Begins, and blocks for PINNING_BRIEF_NS at most, without running the loop: nobody was told yet
 * that the worker is ready, so nothing that others see may happen. Of a back end that registers
 * nothing all staging memory is known at once. The rest lives until pinning_finish. */
void pinning_start(struct pinning *p, struct device *device, struct staging *staging,
                   uv_loop_t *loop);
/* Is the thread in the driver, for however long? One that was not started is allowed. */
bool pinning_busy(const struct pinning *p);
/* It is not busy, nothing is in flight; one that was not started is allowed. */
void pinning_finish(struct pinning *p);

#endif
