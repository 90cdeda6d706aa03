/*
 * The front's end of a channel to a worker or the launcher. It never blocks. Frames go over a
 * SOCK_SEQPACKET socket and, if the other side accepts them, through rings in shared memory
 * (common/duplex.h). Frames that cannot be sent at once are queued; beyond a limit the link fails.
 *
 *     open ──(sending failed, or the other side hung up)──> failed ──> reported ──> closed
 *       └──(the other side broke the rules, or its frames ended)────────┘
 *
 * open: frames go both ways. failed: nothing is sent, and the last frames of the other side are
 * delivered. reported: `broken` has been called. closed: link_destroy was called, which any state
 * allows. Thread: the loop's.
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
    /* Receives a frame and owns its descriptors; those that it leaves in `fds` (count > 0) are
     * closed. `frame` is a copy, valid during the call. */
    void (*frame)(void *data, unsigned kind, struct bytes frame, struct frame_fds *fds);
    /* The other side ended or broke the rules, as `e` says. Called once, from the loop or from
     * link_drain. No frame follows. */
    void (*broken)(void *data, const struct err *e);
    /* Has this turn of the loop room for another frame of a ring? The rest follow in the next
     * turns. first: no frame was taken in this turn. NULL: always. */
    bool (*more)(void *data, bool first);
};

/* Takes the descriptor, also on failure. */
int link_create(uv_loop_t *loop, int fd, size_t queue_max, const struct link_callbacks *callbacks,
                void *data, struct link **ret_link, struct err *e);
/* No callback follows. The memory is freed in the next turn of the loop. NULL is accepted. */
void link_destroy(struct link *l);
/* Sends or queues a frame. Descriptors in `fds` (may be NULL) are duplicated when it is queued.
 * ERR_CLOSED, ERR_LIMIT, ERR_NOMEM. */
int link_send(struct link *l, const struct schema *schema, const void *msg,
              const struct frame_fds *fds, struct err *e);
/* From now on frames without descriptors are gathered into packets (common/packet.h), which go out
 * before the loop sleeps, or by link_flush. */
void link_gather(struct link *l);
void link_flush(struct link *l); /* NULL is accepted */
/* Delivers all frames that have arrived, from within the call, and perhaps `broken`. For a side
 * that is known to have ended. */
void link_drain(struct link *l);

/* Offers rings with F_RINGS, once. Later frames wait for W_RINGS. After a failure all frames go
 * over the socket. */
int link_offer_rings(struct link *l, struct err *e);
/* W_RINGS arrived: the rings are used from now on, or not if `code` is an error. An answer to the
 * offer of a former front is ignored. */
void link_rings_answered(struct link *l, uint64_t nonce, int code);
/* Are more than a quarter of the queue's bytes in use? NULL: false. */
bool link_pressed(const struct link *l);
/* Has the other side sent frames that were not delivered yet? NULL: false. A system call, if there
 * are no rings. */
bool link_unread(const struct link *l);
bool link_offers(const struct link *l); /* the offer of rings has no answer yet; NULL: false */
/* The heartbeat that the other side writes into shared memory, unchecked. false: no rings. */
bool link_beat(const struct link *l, uint64_t *ret_at_ns, uint64_t *ret_patience_ns);

#endif
