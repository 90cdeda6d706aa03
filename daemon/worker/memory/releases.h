/*
 * Delays releases that make a driver wait for all that the device does: of clients' memory, blocks
 * of device memory, managed memory and modules. They run when nothing is in flight, so that the end
 * of one session does not delay another session's job.
 *
 * On a device that is never idle they run after RELEASES_NS, once the oldest job in flight has run
 * for less than RELEASES_WAIT_NS, so that other jobs wait about that long. When more than
 * RELEASES_BYTES are queued, releases run at once.
 *
 * Thread: the loop's. Blocks as long as the driver does.
 */
#ifndef WORKER_MEMORY_RELEASES_H
#define WORKER_MEMORY_RELEASES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"

#define RELEASES_NS      (10 * NS_PER_S)
#define RELEASES_WAIT_NS (100 * NS_PER_MS)
#define RELEASES_BYTES   (UINT64_C(8) << 30)

typedef void (*release_fn)(void *item); /* frees the item */

typedef bool (*releases_idle_fn)(void *data); /* is nothing in flight? */
/* When the oldest job in flight began, ns; 0: none is in flight. */
typedef uint64_t (*releases_since_fn)(void *data);

/* The entry for one item; it is a member of the item. */
struct release {
    release_fn run;
    void *item;
    uint64_t bytes; /* bytes of host memory that the item keeps */
    uint64_t since_ns;
    struct release *next;
};

struct releases {
    struct release *first; /* owned: oldest first */
    struct release **last;
    uint64_t bytes;
    releases_idle_fn idle;
    releases_since_fn since;
    void *data; /* for the callbacks */
};

void releases_init(struct releases *r, releases_idle_fn idle, releases_since_fn since, void *data);
void releases_finish(struct releases *r); /* runs all queued releases */
/* Queues a release. It runs at once if `r` is NULL or nothing is in flight. */
void release_put(struct releases *r, struct release *x, uint64_t bytes, release_fn run, void *item);
/* Queues the rest of a release that ran in part, before all others. Its age is that of the whole.
 */
void release_again(struct releases *r, struct release *x, uint64_t bytes, release_fn run,
                   void *item);
/* Will releases run soon? True if the oldest running job began less than RELEASES_NS ago. */
bool releases_soon(const struct releases *r);
/* Runs the releases that may run now. O(1) if none is queued. */
void releases_turn(struct releases *r);

#endif
