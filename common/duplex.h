/*
 * One end of a channel of frames between two processes: a SOCK_SEQPACKET socket and, where both
 * ends have them, two rings in shared memory (common/ring.h), one each way, with a doorbell each
 * (common/doorbell.h). With rings, the socket carries descriptors and reports the other side's end.
 *
 * Rings: the maker, one end, makes them (duplex_make) and sends the three descriptors in a frame of
 * their own. From then on (duplex_offered) it queues its frames. The adopter, the other end, adopts
 * the rings (duplex_adopt), answers over the socket, and uses them (duplex_join). At the answer the
 * maker uses them as well (duplex_join), or returns to the socket (duplex_refused). So in each
 * direction all packets of the socket come before all packets of the ring.
 *
 * Order: a record holds a packet (common/packet.h). A frame with descriptors goes over the socket,
 * and a marker in the ring keeps its place: at a marker the reader takes one packet off the socket.
 * While rings are in use, a packet without descriptors on the socket comes from a process that has
 * taken over the maker's end and does not know the rings (duplex_read_socket).
 *
 * The other side is not trusted: an end that finds a broken rule returns ERR_PROTOCOL and is
 * `failed` from then on.
 *
 * Thread: one owner, except for the beat. Nothing blocks. It knows no loop: the owner watches the
 * socket and `rings.bell`, and calls.
 */
#ifndef COMMON_DUPLEX_H
#define COMMON_DUPLEX_H

#include <stdatomic.h>

#include "common/memfd.h"
#include "common/packet.h"
#include "common/ring.h"

#define DUPLEX_RING_BYTES (256u * 1024u) /* each way; a packet is at most half as long */
#define DUPLEX_BATCH      64u            /* packets taken from a ring in one turn */
#define DUPLEX_FDS        3              /* memory, the adopter's bell, the maker's bell */

/* The adopter's signs of life, in shared memory. Any of its threads may write them. */
struct duplex_beat {
    atomic_ullong at_ns;       /* clock_now_ns of the last sign */
    atomic_ullong patience_ns; /* longest time until the next sign; 0: as usual */
};

struct duplex_rings {
    struct memfd memory; /* MEMFD_NONE: none */
    int bell;            /* the other side rings it, and so does a reader with more than a batch */
    int far_bell;        /* the other side's */
    struct ring_consumer in;
    struct ring_producer out;
};

enum duplex_state {
    DUPLEX_SOCKET,
    DUPLEX_OFFERED, /* the adopter has not answered; frames are queued */
    DUPLEX_RINGS,
};

enum duplex_block { DUPLEX_NOTHING, DUPLEX_BY_SOCKET, DUPLEX_BY_RING, DUPLEX_BY_ANSWER };

struct duplex_packet;

struct duplex {
    int fd; /* not owned */
    enum duplex_state state;
    bool in_ring; /* packets are taken from the ring */
    bool gathers; /* frames for the socket wait for duplex_flush */
    bool lossy;   /* a frame whose descriptors find no room arrives without them (`lost`) */
    bool failed;  /* every call fails from now on */
    bool more;    /* another frame follows the one taken last */
    struct duplex_rings rings;
    struct duplex_packet *queue; /* owned, oldest first */
    struct duplex_packet **queue_end;
    unsigned queued;
    size_t queued_bytes;
    size_t queue_max;            /* bytes */
    enum duplex_block blocked;   /* what the oldest packet waits for */
    struct duplex_packet *kept;  /* owned: packets off the socket before their markers */
    struct duplex_packet *newer; /* owned: the first packet of another maker; NULL: none */
    unsigned turn;               /* packets taken since duplex_turn */
    struct bytes rest;           /* frames of the packet in `in` that are not returned yet */
    bool first;                  /* no frame of that packet was returned */
    struct packet gathered;      /* frames for the socket */
    uint8_t in[FRAME_MAX_BYTES];
};

/* The socket remains the caller's. queue_max: bytes that may wait for the other side. */
void duplex_init(struct duplex *d, int fd, size_t queue_max, bool gathers);
void duplex_finish(struct duplex *d);

/* ---- rings ---- */

/* Makes rings. ret_fds: the descriptors to send to the other end; they remain the duplex's. On
 * failure (ERR_IO) nothing has changed. */
int duplex_make(struct duplex *d, struct frame_fds *ret_fds, struct err *e);
/* The descriptors were sent. Frames wait for the answer from now on. */
void duplex_offered(struct duplex *d);
/* Gives the rings up; queued frames go over the socket. */
void duplex_refused(struct duplex *d);
/* Takes the maker's descriptors (fds->count is 0 then). The rings are not used yet. */
int duplex_adopt(struct duplex *d, struct frame_fds *fds, struct err *e);
/* Uses the rings for both directions from now on. Rings this end's bell: there may be records. */
void duplex_join(struct duplex *d);
/* For the adopter, when the maker has ended: gives up the rings with all records in them and
 * packets without a marker, and clears `failed`. The packet that duplex_read_socket found comes
 * next. `rings.bell` is closed here and must not be watched. */
void duplex_leave(struct duplex *d);
/* NULL: no rings. Valid until duplex_leave or duplex_finish. */
struct duplex_beat *duplex_beat(const struct duplex *d);

/* ---- out ---- */

/* Gathers, sends or queues a frame; descriptors in `fds` (may be NULL) remain the caller's.
 * ERR_NOMEM, ERR_IO of a descriptor: the frame is not sent, and nothing else has changed. Errors
 * that set `failed`: ERR_LIMIT (the queue is full), ERR_IO, ERR_PROTOCOL. */
int duplex_send(struct duplex *d, struct bytes frame, const struct frame_fds *fds, struct err *e);
/* Publishes records in the ring and sends the gathered frames. A failure sets `failed`. */
int duplex_flush(struct duplex *d, struct err *e);
/* Sends queued packets while there is room. Called when the socket is writable (DUPLEX_BY_SOCKET)
 * or the bell was rung, and followed by duplex_flush. A failure sets `failed`. */
int duplex_resume(struct duplex *d, struct err *e);

/* ---- in ---- */

enum { DUPLEX_END = 2 };

/* Begins a turn, before frames are taken because the bell was rung. */
void duplex_turn(struct duplex *d);
/* The next frame, a copy that is valid until the next call; its descriptors (ret_fds->count is 0
 * before) are the caller's. 1: there is one; 0: none now; DUPLEX_END: the socket's end. < 0 without
 * `failed`: a malformed packet; the next call returns the next frame. */
int duplex_next(struct duplex *d, struct bytes *ret_frame, struct frame_fds *ret_fds,
                struct err *e);
/* Has the other end sent frames that duplex_next has yet to return? A system call, if there are no
 * rings. */
bool duplex_unread(const struct duplex *d);
/* Ends a turn: releases the room of taken records, and rings this end's bell if frames are left. */
void duplex_settle(struct duplex *d);
void duplex_again(struct duplex *d); /* rings this end's bell */
/* Takes packets from the socket from now on: the other side has ended and its ring is empty. */
void duplex_by_socket(struct duplex *d);
/* Reads a packet while rings are in use and the socket is readable. 0: no packet, or a packet that
 * waits for its marker. 1: the packet is from another maker: the owner takes the remaining records
 * of the ring, then calls duplex_leave. DUPLEX_END: the socket's end. */
int duplex_read_socket(struct duplex *d, struct err *e);

#endif
