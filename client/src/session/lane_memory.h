/*
 * What a ring lane holds: its memory, its bells, and the wait for them. A thread may look at the
 * memory without the lock; memory that is let go meanwhile stays until that thread is through.
 *
 * Thread: under the client's lock, unless a function says otherwise. Never blocks.
 */
#ifndef CLIENT_SESSION_LANE_MEMORY_H
#define CLIENT_SESSION_LANE_MEMORY_H

#include "client/src/session/client.h"

/* Sequenced requests before a lane is asked for: a client that sends a job or two has no use for
 * one. */
#define LANE_FIRST_AFTER 8u

/* Closes one of the lane's descriptors, if it is open. */
void lane_fd_close(struct gpud_client *c, int *fd);
/* Lets all of them and the memory go. */
void lane_release(struct gpud_client *c);
/* The connection is gone, or the client goes. What was sent by the ring is unanswered. */
void lane_drop(struct gpud_client *c);

/* What is looked at without the lock. */
struct lane_look {
    const struct ring_control *control;
    uint32_t tail;
    uint64_t until_ns;
};
/* Is it worth while to look for an answer before sleeping? Then lane_look without the lock, then
 * lane_look_end. One thread at a time. */
bool lane_look_begin(struct gpud_client *c, uint64_t deadline_ns, struct lane_look *ret_look);
/* There is something. Needs no lock. */
bool lane_look(const struct lane_look *look);
/* Whether there is something after all. */
bool lane_look_end(struct gpud_client *c, bool found);

#endif
