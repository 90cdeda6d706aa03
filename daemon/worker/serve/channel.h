/*
 * The worker's end of its channel: frames in and out on the loop, over the socket and, while a
 * front that offered them is there, through rings (common/duplex.h). Frames without descriptors are
 * gathered and go out together when the loop is about to sleep. What cannot be sent then is queued.
 * While the queue is long no frames are taken, but what one packet or batch holds and what a front
 * that ended had said: so it is bounded by the jobs in flight, a batch and what an inventory tells
 * without descriptors. Who has many descriptors to send waits for room (channel_room).
 * Thread: the loop's.
 *
 * Fronts come and go, and rings go with theirs. What a front published is taken before the next one
 * is heard. What it has not taken is dropped: it may as well have taken it just before it ended,
 * and the next one asks for everything with F_INVENTORY.
 */
#ifndef WORKER_SERVE_CHANNEL_H
#define WORKER_SERVE_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "common/bytes.h"
#include "common/duplex.h"
#include "common/err.h"
#include "proto/codec.h"

struct bell;

struct channel_callbacks {
    /* The descriptors are the receiver's; those it leaves in `fds` (count > 0) are closed.
     * fds->lost: they found no room here; the frame is to be refused. */
    void (*frame)(void *data, struct bytes frame, struct frame_fds *fds);
    /* Nobody holds the other end any more, or it cannot be used. Called once. */
    void (*closed)(void *data, const struct err *e);
    /* Where signs of life go from now on; NULL: to the socket. */
    void (*beat)(void *data, struct duplex_beat *beat);
    /* The queue is short again, after channel_room said that it was not. */
    void (*room)(void *data);
};

struct channel {
    struct duplex duplex; /* its socket is owned by the caller */
    uv_poll_t poll;
    uv_prepare_t before_sleep;
    struct bell *bell; /* owned; NULL: no rings */
    struct channel_callbacks callbacks;
    void *data;
    int events; /* what the poll watches for */
    bool closed;
    bool paused; /* frames were not taken: the queue was long */
    bool wanted; /* somebody waits for room */
};

int channel_init(struct channel *c, uv_loop_t *loop, int fd, struct channel_callbacks callbacks,
                 void *data, struct err *e);
/* Encodes and gathers, sends or queues; descriptors in `fds` (may be NULL) are duplicated when
 * queued. */
int channel_send(struct channel *c, const struct schema *schema, const void *msg,
                 const struct frame_fds *fds, struct err *e);
/* As channel_send for an encoded frame; the bytes are copied when queued. */
int channel_send_bytes(struct channel *c, struct bytes frame, const struct frame_fds *fds,
                       struct err *e);
/* Whether the queue is short: each frame with descriptors in it takes as many again. If not,
 * `room` is called once it is. */
bool channel_room(struct channel *c);
/* Sends what was gathered: for who is about to hold the loop up. A failure is told by `closed`. */
void channel_flush(struct channel *c);
/* Takes the rings that a front offers (fds->count is 0 then) and answers with W_RINGS; where they
 * cannot be used the answer says so. < 0: no answer could be sent. */
int channel_rings(struct channel *c, uint64_t nonce, struct frame_fds *fds, struct err *e);
/* Behind the frame that is being handed out there is another. */
bool channel_more(const struct channel *c);
/* Sends what waits; blocks for at most `timeout_ms` for each step. For a process that is about to
 * end. */
void channel_drain(struct channel *c, int timeout_ms);
/* Stops; memory may go when the loop has turned. */
void channel_finish(struct channel *c);

#endif
