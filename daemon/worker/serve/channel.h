/*
 * The worker's end of the channel to the front: frames in and out on the loop. They go over the
 * socket or, while a front that offered rings is connected, through these (common/duplex.h). Frames
 * without descriptors are gathered and go out together before the loop sleeps. Those that cannot be
 * sent then are queued.
 *
 * While the queue is long, no frames are received, except those of the present packet or batch and
 * those that a front sent before it ended. The queue is therefore bounded by the jobs in flight, a
 * batch, and the part of an inventory that has no descriptors. A sender of many descriptors waits
 * for room (channel_room).
 *
 * Each front brings its own rings. All frames that one front published are served before the next
 * front's. Frames to a front that it did not receive are dropped: it might as well have received
 * them just before it ended, and the next front asks for everything with F_INVENTORY. Thread: the
 * loop's.
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
    /* Serves a frame. May take descriptors over by setting fds->count to 0; those left in `fds`
     * are closed afterwards. fds->lost: the process had no room for the descriptors, and the
     * frame has to be refused. */
    void (*frame)(void *data, struct bytes frame, struct frame_fds *fds);
    /* No process has the other end any more, or it cannot be used. Called once. */
    void (*closed)(void *data, const struct err *e);
    /* The place for beats from now on; NULL: the socket. Returns the descriptor for W_RINGS, which
     * it keeps; -1: none. */
    int (*beat)(void *data, struct duplex_beat *beat);
    /* The queue is short again, after channel_room returned false. */
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
    bool paused; /* frames were not received because the queue was long */
    bool wanted; /* channel_room returned false, and `room` was not called since */
};

int channel_init(struct channel *c, uv_loop_t *loop, int fd, struct channel_callbacks callbacks,
                 void *data, struct err *e);
/* Encodes a message, and gathers, sends or queues it. Descriptors in `fds` (may be NULL) are
 * duplicated when queued. */
int channel_send(struct channel *c, const struct schema *schema, const void *msg,
                 const struct frame_fds *fds, struct err *e);
/* As channel_send, for an encoded frame; its bytes are copied when queued. */
int channel_send_bytes(struct channel *c, struct bytes frame, const struct frame_fds *fds,
                       struct err *e);
/* Is the queue short? Each queued frame keeps duplicates of its descriptors. If the queue is
 * long, `room` is called once it is short. */
bool channel_room(struct channel *c);
/* Sends the gathered frames, before the caller blocks the loop. `closed` reports a failure. */
void channel_flush(struct channel *c);
/* Adopts the rings that a front offers (fds->count is 0 then), and answers with W_RINGS, which
 * reports an error if they cannot be used. < 0: no answer could be sent. */
int channel_rings(struct channel *c, uint64_t nonce, struct frame_fds *fds, struct err *e);
/* Is another frame ready behind the one that is being served? */
bool channel_more(const struct channel *c);
/* Sends the queue, for a process that is about to end. Blocks for at most `timeout_ms` for each
 * packet. */
void channel_drain(struct channel *c, int timeout_ms);
/* Stops the channel. Its memory is used until the loop has turned. */
void channel_finish(struct channel *c);

#endif
