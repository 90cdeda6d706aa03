/*
 * The resources of a ring lane: memory, bells, and spinning on the ring. One thread may spin
 * without the lock. Memory that is released meanwhile remains mapped until that thread has
 * finished.
 *
 * Thread: under the client's lock, unless a function says otherwise. Never blocks.
 */
#ifndef CLIENT_LINK_LANE_MEMORY_H
#define CLIENT_LINK_LANE_MEMORY_H

#include "client/src/base/client.h"

/* Sequenced requests before the client asks for a lane, which is not worth it for a job or two. */
#define LANE_FIRST_AFTER 8u

/* Closes one of the lane's descriptors, if it is open. */
void lane_fd_close(struct gpud_client *c, int *fd);
/* Closes all descriptors and releases the memory. */
void lane_release(struct gpud_client *c);
/* Releases the lane at the end of its connection. Requests that went by the ring are unanswered. */
void lane_drop(struct gpud_client *c);

/* What lane_spin reads without the lock. */
struct lane_spin {
    const struct ring_control *control;
    uint32_t tail;
    uint64_t until_ns;
};
/* true: spinning is worth while. The caller then calls lane_spin without the lock, and
 * lane_spin_end with it. One thread at a time. */
bool lane_spin_begin(struct gpud_client *c, uint64_t deadline_ns, struct lane_spin *ret_spin);
/* Spins until an answer is in the ring (true), or the time is over. Needs no lock. */
bool lane_spin(const struct lane_spin *spin);
/* Ends the spinning. true: the ring has an answer. */
bool lane_spin_end(struct gpud_client *c, bool found);

#endif
