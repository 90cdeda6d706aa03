/*
 * The life of buffers: creation in a worker, sealing, restoring, loss, and the release of memory
 * when nothing names a buffer. requests/ has the requests of clients. Thread: the loop's; nothing
 * blocks.
 */
#ifndef FRONT_MEMORY_BUFFERS_H
#define FRONT_MEMORY_BUFFERS_H

#include "daemon/front/model/front.h"

/* Asks the device's worker for the buffer's memory. A worker that does not serve, or is to end, is
 * not asked: buffer_device_ready follows. A failure may destroy the buffer. */
void buffer_ask(struct front *f, struct buffer *b);
/* The worker answered: answers the requests that created or sealed the buffer. */
void buffer_answered(struct front *f, struct device *d, const struct msg_w_buffer *m);
void buffer_create_failed(struct front *f, struct buffer *b, const struct err *e);
/* A load of the module succeeded or failed: continues variables that wait for it. */
void buffer_module_settled(struct front *f, struct module *m);
/* Revokes an export that the client has not fetched. Called when the buffer's memory changes or is
 * freed. */
void buffer_unexport(struct front *f, struct buffer *b);
/* A job released a buffer that waits to be sealed: the copy starts after the last writer. */
void buffer_seal_next(struct front *f, struct buffer *b);
/* The same when a job that used it has ended, which may have been all that wanted its worker. */
void buffer_seal_left(struct front *f, struct buffer *b);
/* The device will not open: requests that wait for its buffers fail, and buffers that wait to be
 * restored are lost. */
void buffer_device_given_up(struct front *f, struct device *d);
/* The worker ended. Requests see the loss at once. Buffers are marked and sessions notified in
 * slices, and the next worker of the device starts when that is done. */
void buffer_device_lost(struct front *f, struct device *d);
void buffer_lose_some(struct front *f); /* continues, as far as this turn has units of work */
/* A worker opened the device, or was to end and stays: asks for buffers that are being created and
 * for seals that are wanted, and begins to restore. */
void buffer_device_ready(struct front *f, struct device *d);
/* The device's next worker restores the buffer from its host copy. */
void buffer_restore_later(struct device *d, struct buffer *b);
/* What a worker could not restore for lack of memory or descriptors is asked for again after a
 * pause, for some seconds. The device serves meanwhile: only jobs that use the buffer wait. */
void buffer_restore_watch(struct front *f);
/* Does the device have buffers to restore before it serves? */
bool buffer_restoring(const struct device *d);
/* Removes the handle. The memory is freed when no job names the buffer; until then it is restored
 * or lost like other buffers. */
void buffer_drop(struct front *f, struct buffer *b);
/* Keeps a named buffer without owner and openers for its linger time. */
void buffer_let_linger(struct front *f, struct buffer *b);
/* A job that named it ended. Destroys a freed buffer that no job names. */
void buffer_settle(struct front *f, struct buffer *b);

#endif
