/*
 * What was given up and whose release makes a driver wait for all that the device does: memory of
 * clients, blocks of the device's and managed memory, modules. It is kept until nothing is in
 * flight, so that the end of one session holds up no job of another. On a device that is never idle
 * it goes after RELEASES_NS, when the oldest job has not run for longer than RELEASES_WAIT_NS, so
 * that others wait about as long; and whatever runs where more than RELEASES_BYTES would lie
 * around.
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

typedef void (*release_fn)(void *item); /* frees it */

typedef bool (*releases_idle_fn)(void *data); /* is nothing in flight? */
/* Since when the oldest job is in flight, ns; 0: there is none. */
typedef uint64_t (*releases_since_fn)(void *data);

/* Part of the item. */
struct release {
    release_fn run;
    void *item;
    uint64_t bytes; /* of host memory, that it keeps */
    uint64_t since_ns;
    struct release *next;
};

struct releases {
    struct release *first; /* the oldest; owned */
    struct release **last;
    uint64_t bytes;
    releases_idle_fn idle;
    releases_since_fn since;
    void *data; /* theirs */
};

void releases_init(struct releases *r, releases_idle_fn idle, releases_since_fn since, void *data);
void releases_finish(struct releases *r); /* releases what is left */
/* At once where `r` is NULL or nothing is in flight. */
void release_put(struct releases *r, struct release *x, uint64_t bytes, release_fn run, void *item);
/* Is it likely to go soon: has what runs begun less than RELEASES_NS ago? */
bool releases_soon(const struct releases *r);
/* Releases what may go now. O(1) if there is nothing. */
void releases_turn(struct releases *r);

#endif
