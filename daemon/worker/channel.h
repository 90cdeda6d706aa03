/*
 * The worker's end of its channel: frames in and out on the loop. Frames without descriptors are
 * gathered and go out together when the loop is about to sleep. What cannot be sent then is queued;
 * while the queue is long no frames are read, so it is bounded by the jobs in flight and one
 * inventory. Thread: the loop's.
 */
#ifndef WORKER_CHANNEL_H
#define WORKER_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "common/bytes.h"
#include "common/err.h"
#include "common/packet.h"
#include "proto/codec.h"

struct channel_out; /* a queued frame */

struct channel_callbacks {
    /* The descriptors are the receiver's; those it leaves in `fds` (count > 0) are closed. */
    void (*frame)(void *data, struct bytes frame, struct frame_fds *fds);
    /* Nobody holds the other end any more, or it cannot be used. Called once. */
    void (*closed)(void *data, const struct err *e);
};

struct channel {
    int fd; /* owned by the caller */
    uv_poll_t poll;
    uv_prepare_t before_sleep;
    struct packet gathered;
    struct channel_callbacks callbacks;
    void *data;
    struct channel_out *first;
    struct channel_out *last;
    size_t queued;
    int events; /* what the poll watches for */
    bool closed;
    bool more; /* frames of the packet that is being taken apart */
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
/* Sends what was gathered: for who is about to hold the loop up. A failure is told by `closed`. */
void channel_flush(struct channel *c);
/* Blocks for at most `timeout_ms` until the queue is out. For a process that is about to end. */
void channel_drain(struct channel *c, int timeout_ms);
/* Stops; memory may go when the loop has turned. */
void channel_finish(struct channel *c);

#endif
