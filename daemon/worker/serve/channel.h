/*
 * The worker's end of its channel: frames in and out on the loop, over the socket and, while a
 * front that offered them is connected, through rings (common/duplex.h). Frames without descriptors
 * are gathered and go out together when the loop is about to sleep. Frames that cannot be sent then
 * are queued.
 *
 * While the queue is long no frames are taken, except those of the present packet or batch and
 * those that a front sent before it ended. The queue is therefore bounded by the jobs in flight, a
 * batch, and the part of an inventory that has no descriptors. A sender of many descriptors waits
 * for room (channel_room).
 *
 * Fronts connect and end, and their rings with them. All frames that a front published are taken
 * before the next front's. Frames that it has not taken are dropped: it may as well have taken them
 * just before it ended, and the next front asks for everything with F_INVENTORY. Thread: the
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
    /* Takes the descriptors; those that are left in `fds` (count > 0) are closed. fds->lost: the
     * process had no room for them, and the frame has to be refused. */
    void (*frame)(void *data, struct bytes frame, struct frame_fds *fds);
    /* No process holds the other end any more, or it cannot be used. Called once. */
    void (*closed)(void *data, const struct err *e);
    /* Where beats go from now on; NULL: to the socket. */
    void (*beat)(void *data, struct duplex_beat *beat);
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
    bool paused; /* no frames were taken, as the queue was long */
    bool wanted; /* channel_room returned false */
};

int channel_init(struct channel *c, uv_loop_t *loop, int fd, struct channel_callbacks callbacks,
                 void *data, struct err *e);
/* Encodes a message, and gathers, sends or queues it. Descriptors in `fds` (may be NULL) are
 * duplicated when queued. */
int channel_send(struct channel *c, const struct schema *schema, const void *msg,
                 const struct frame_fds *fds, struct err *e);
/* As channel_send for an encoded frame; the bytes are copied when queued. */
int channel_send_bytes(struct channel *c, struct bytes frame, const struct frame_fds *fds,
                       struct err *e);
/* Is the queue short? Each frame with descriptors in it holds as many duplicates. If not, `room` is
 * called once it is. */
bool channel_room(struct channel *c);
/* Sends what was gathered, before a caller blocks the loop. A failure is reported by `closed`. */
void channel_flush(struct channel *c);
/* Takes the rings that a front offers (fds->count is 0 then) and answers with W_RINGS, which says
 * so if they cannot be used. < 0: no answer could be sent. */
int channel_rings(struct channel *c, uint64_t nonce, struct frame_fds *fds, struct err *e);
/* Is there another frame behind the one that is being handed out? */
bool channel_more(const struct channel *c);
/* Sends the queue; blocks for at most `timeout_ms` for each packet. For a process that is about to
 * end. */
void channel_drain(struct channel *c, int timeout_ms);
/* Stops. Its memory is used until the loop has turned. */
void channel_finish(struct channel *c);

#endif
