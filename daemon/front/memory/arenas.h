/*
 * The life of arenas: the workers that have them, and their end. requests/ has the requests of
 * clients. Thread: the loop's; nothing blocks.
 */
#ifndef FRONT_MEMORY_ARENAS_H
#define FRONT_MEMORY_ARENAS_H

#include "daemon/front/model/front.h"

/* Removes the handle. The memory is freed when no job names the arena. */
void arena_drop(struct front *f, struct arena *a);
/* A job that named it ended. Destroys an arena without handle and jobs. */
void arena_settle(struct front *f, struct arena *a);
/* The worker has mapped the arena, or could not (align 0). */
void arena_mapped(struct front *f, const struct device *d, const struct msg_w_arena *m);
/* The worker ended; the next one of the device knows no arenas. */
void arena_device_lost(struct front *f, const struct device *d);

#endif
