/*
 * One end of a channel on the loop: frames in, frames out, never blocking; over a SOCK_SEQPACKET
 * socket and, where the other side takes them, through rings in shared memory (common/duplex.h).
 * Frames that cannot be sent at once are queued up to a limit, then the link is broken.
 * Thread: the loop's.
 */
#ifndef FRONT_WORKERS_LINK_H
#define FRONT_WORKERS_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "common/bytes.h"
#include "common/err.h"
#include "common/seqpacket.h"
#include "proto/codec.h"

struct link;

struct link_callbacks {
    /* A frame. The descriptors are the receiver's; those it leaves in `fds` (count > 0) are closed.
     * `frame` is a copy of what the other side sent and valid during the call. */
    void (*frame)(void *data, unsigned kind, struct bytes frame, struct frame_fds *fds);
    /* The other side is gone or broke the rules (`e` says which); called once, from the loop, never
     * from within a link_ call. No frame follows. */
    void (*broken)(void *data, const struct err *e);
    /* Has this turn of the loop room for another frame out of a ring? The rest comes in the next
     * turns. `first`: none was taken in this one. NULL: always. */
    bool (*more)(void *data, bool first);
};

/* Takes the descriptor (on failure too). */
int link_create(uv_loop_t *loop, int fd, size_t queue_max, const struct link_callbacks *callbacks,
                void *data, struct link **ret_link, struct err *e);
/* No callback comes any more; memory is freed when the loop has turned. NULL is accepted. */
void link_destroy(struct link *l);
/* Encodes and sends or queues; descriptors in `fds` (may be NULL) are duplicated when queued. */
int link_send(struct link *l, const struct schema *schema, const void *msg,
              const struct frame_fds *fds, struct err *e);
/* From now on frames without descriptors are gathered and go out together: when the loop is about
 * to sleep, or sooner by link_flush. The other side unpacks them (common/packet.h). */
void link_gather(struct link *l);
void link_flush(struct link *l); /* NULL is accepted */
/* Takes all frames that have arrived, calling back from within; `broken` may come as well. For when
 * the other side is known to have ended. */
void link_drain(struct link *l);

/* Offers rings with F_RINGS; what is sent from then on waits for W_RINGS. Once. A failure changes
 * nothing: the socket does all. */
int link_offer_rings(struct link *l, struct err *e);
/* W_RINGS came: they are used from now on, or (code) are not. An answer to somebody else's offer is
 * stepped over. */
void link_rings_answered(struct link *l, uint64_t nonce, int code);
/* Is a quarter of what may be queued taken? NULL: false. */
bool link_pressed(const struct link *l);
bool link_offers(const struct link *l); /* no answer has come yet; NULL: false */
/* What the other side says in shared memory of its being alive; not checked. false: no rings. */
bool link_beat(const struct link *l, uint64_t *ret_at_ns, uint64_t *ret_patience_ns);

#endif
