/*
 * How long the buffers of a job take to the device where it runs (memory/moves.h): from their
 * device to the host, and from there. Learnt for each device and direction from moves that ended,
 * until then taken to be slow. Buffers that move for one job count one after the other. Thread: the
 * loop's. Nothing blocks.
 */
#ifndef FRONT_SCHED_TRANSIT_H
#define FRONT_SCHED_TRANSIT_H

#include "daemon/front/model/forecast.h"
#include "daemon/front/model/front.h"

/* memory/moves.c calls these: the host has got the content of the buffer from its device, or `to`
 * from the host, after so long. */
void transit_left(const struct front *f, const struct buffer *b, uint64_t ns);
void transit_came(const struct buffer *b, struct device *to, uint64_t ns);

/* From one device to the other, if both are not the same; content that the host has does not leave
 * the first. sure: known from moves that ended. */
struct estimate transit_cost(const struct buffer *b, struct device *from, struct device *to);
/* What the buffers of the job need, once it is its turn: it stands in their lines. ns 0, and sure:
 * nothing moves for it. O(its buffers). */
struct estimate transit_of(const struct front *f, const struct job *j, uint64_t now_ns);
/* Are all its buffers there or on the way there? */
bool transit_began(const struct job *j);

#endif
