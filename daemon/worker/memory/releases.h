/*
 * Memory and modules that are no longer used, and whose release makes a driver wait for all that
 * the device does: memory of clients, blocks of device memory, managed memory, modules. They are
 * released when nothing is in flight, so that the end of one session holds up no other session's
 * job.
 *
 * On a device that is never idle they are released after RELEASES_NS, when the oldest job has not
 * run for longer than RELEASES_WAIT_NS, so that other jobs wait about as long. Above RELEASES_BYTES
 * they are released at once.
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

/* Part of the item. */
struct release {
    release_fn run;
    void *item;
    uint64_t bytes; /* bytes of host memory that it keeps */
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
void releases_finish(struct releases *r); /* releases all items */
/* Releases the item later; at once if `r` is NULL or nothing is in flight. */
void release_put(struct releases *r, struct release *x, uint64_t bytes, release_fn run, void *item);
/* Will items be released soon: did the running jobs begin less than RELEASES_NS ago? */
bool releases_soon(const struct releases *r);
/* Releases the items that may be released now. O(1) if there are none. */
void releases_turn(struct releases *r);

#endif
