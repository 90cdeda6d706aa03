/*
 * Before a worker ends that is to lose nothing (rest.h), its buffers go to the host. The worker
 * copies each into memory that the front makes, as for a seal, and the device's next worker
 * restores it, as a sealed one. Then the copy goes, and the buffer is as it was.
 *
 * The device, a domain or one that is drained, rests meanwhile: no job is in flight or starts
 * there. Jobs may wait that name its buffers. A copy is true as long as no job has run with the
 * buffer since, so it is dropped when the device serves again.
 *
 * The copies are charged: all of them to [domains] host_memory_max, and those of a tenant's idle
 * domain to the tenant's memory_spilled. A domain that does not fit keeps its worker, and so does
 * one that has a buffer which cannot move: variables of modules, and buffers that others may have
 * mapped. The launcher keeps the copies, and those of sealed buffers, for the next front (keep.h).
 * A domain of which it cannot keep all does not fit, either. It may have 1,024 of them, or half of
 * what the launcher still keeps, so that others find some. A buffer that no worker was asked for
 * yet needs no copy.
 *
 * Thread: the loop's. Nothing blocks.
 */
#ifndef FRONT_WORKERS_EVACUATE_H
#define FRONT_WORKERS_EVACUATE_H

#include "daemon/front/model/front.h"

/* Has the host the buffer's content already, or is the buffer lost? */
bool evacuate_keeps(const struct buffer *b);
/* Can the worker copy it now, as no job is in flight? */
bool evacuate_movable(const struct buffer *b);
/* Bytes that the host still has for copies. */
uint64_t evacuate_room(const struct front *f);
/* What a worker has that its end moves to the host. */
struct evacuation_load {
    uint64_t bytes; /* of `buffers` */
    unsigned buffers;
    unsigned copies;    /* there already, and the launcher has yet to keep them */
    enum keeper keeper; /* the first kind of those that would be lost */
};

/* Counts the buffer in. false: it would be lost with the worker. */
bool evacuate_count(const struct buffer *b, struct evacuation_load *load);
/* What of it cannot go to the host; KEEPER_NONE: all may go. */
enum keeper evacuate_keeper(const struct front *f, const struct device *d,
                            const struct evacuation_load *load);

/* Asks for copies of all its buffers that the host does not have. d->evacuation.state says what
 * became of it: EVACUATION_OVER, EVACUATION_FAILED, or EVACUATION_COPIES for now. */
void evacuate_begin(struct front *f, struct device *d);
/* The device serves again: its copies are dropped. */
void evacuate_cancel(struct front *f, struct device *d);
/* When a worker that copies, and has not answered since, counts as hung. */
uint64_t evacuate_late_ns(const struct device *d);

/* Asks the worker for a copy of one buffer that is movable and moves to another device. The device
 * takes jobs: none may get the buffer before the copy is dropped. ERR_BUSY: later. ERR_LIMIT: the
 * host has no room for it. Others: as command_buffer_lend. */
int evacuate_one(struct front *f, struct buffer *b, struct err *e);
/* The buffer leaves its device for `to`: its copy, if it has one, counts there. */
void evacuate_leave(struct front *f, const struct buffer *b, struct device *to);

/* The worker has answered for a copy. */
void evacuate_answered(struct front *f, struct buffer *b, const struct err *e);
/* The worker has ended. Copies that are complete remain. */
void evacuate_lost(struct device *d);
/* The buffer needs its copy no more. It has none: nothing happens. */
void evacuate_drop(struct front *f, struct buffer *b);
/* The buffer has a copy (b->host_fd) from an earlier front, and is being restored. */
void evacuate_adopt(struct front *f, struct buffer *b);

#endif
