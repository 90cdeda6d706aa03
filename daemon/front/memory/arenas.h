/*
 * The life of arenas: which workers have them, and when they go. What clients ask of them is in
 * requests_arena.c. Thread: the loop's; nothing blocks.
 */
#ifndef FRONT_MEMORY_ARENAS_H
#define FRONT_MEMORY_ARENAS_H

#include "daemon/front/model/front.h"

/* Takes the handle away; memory goes when no job names it. */
void arena_drop(struct front *f, struct arena *a);
/* A job that named it has ended. */
void arena_settle(struct front *f, struct arena *a);
/* The device's kernels can work on it as it is, or its worker could not take it. */
void arena_mapped(struct front *f, const struct device *d, const struct msg_w_arena *m);
/* The next worker of the device knows no arenas. */
void arena_device_lost(struct front *f, const struct device *d);

#endif
