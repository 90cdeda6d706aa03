/*
 * One end of a channel of frames between two processes: a SOCK_SEQPACKET socket and, where both
 * ends have them, two rings in shared memory (common/ring.h), one each way, with an eventfd each as
 * doorbell. With rings the socket carries descriptors, and shows the other side's end.
 *
 * Rings: one end makes them (duplex_make), sends the three descriptors in a frame of its own,
 * says so (duplex_offered) and from then on queues what it has to send. The other end adopts them
 * (duplex_adopt), answers over the socket, and is on them (duplex_join). The answer takes the first
 * end there as well (duplex_join), or back (duplex_refused). So in each direction everything that
 * was sent over the socket comes before everything that is in the ring.
 *
 * Order: a record holds a packet (common/packet.h). A frame with descriptors goes over the socket,
 * and a marker stands in the ring where it belongs: at a marker the reader takes one packet off the
 * socket. On rings a packet without descriptors on the socket comes from a process that has taken
 * over the other end and does not know the rings (duplex_look).
 *
 * Nothing that the other side writes is believed: ERR_PROTOCOL, after which `failed` stays.
 *
 * Thread: one owner, but the beat. Nothing blocks. It knows no loop: the owner watches the socket
 * and `rings.bell`, and calls.
 */
#ifndef COMMON_DUPLEX_H
#define COMMON_DUPLEX_H

#include <stdatomic.h>

#include "common/memfd.h"
#include "common/packet.h"
#include "common/ring.h"

#define DUPLEX_RING_BYTES (256u * 1024u) /* each way; a packet takes at most half */
#define DUPLEX_BATCH      64u            /* packets out of a ring before others get their turn */
#define DUPLEX_FDS        3              /* memory, the adopter's bell, the maker's bell */

/* The adopter's signs of life, in shared memory: any thread of its may write them. */
struct duplex_beat {
    atomic_ullong at_ns;       /* clock_now_ns of the last one */
    atomic_ullong patience_ns; /* how long the next may take; 0: as usual */
};

struct duplex_rings {
    struct memfd memory; /* MEMFD_NONE: none */
    int bell; /* eventfd: the other side rings, and so does a reader with more than a batch */
    int far_bell;
    struct ring_consumer in;
    struct ring_producer out;
};

enum duplex_state {
    DUPLEX_SOCKET,
    DUPLEX_OFFERED, /* rings, to an end that has not answered: what is sent waits */
    DUPLEX_RINGS,
};

enum duplex_block { DUPLEX_NOTHING, DUPLEX_BY_SOCKET, DUPLEX_BY_RING, DUPLEX_BY_ANSWER };

struct duplex_packet;

struct duplex {
    int fd; /* not owned */
    enum duplex_state state;
    bool in_ring; /* packets are taken from the ring */
    bool gathers; /* frames wait for duplex_flush */
    bool lossy;   /* frames whose descriptors find no room here come without them (`lost`) */
    bool failed;  /* of no use any more */
    bool more;    /* behind the frame that was taken last there is another */
    struct duplex_rings rings;
    struct duplex_packet *queue; /* owned, oldest first */
    struct duplex_packet **queue_end;
    unsigned queued;
    size_t queued_bytes;
    size_t queue_max;            /* bytes */
    enum duplex_block blocked;   /* what the oldest waits for */
    struct duplex_packet *kept;  /* owned: taken off the socket before their markers */
    struct duplex_packet *newer; /* owned: the first packet of another other side */
    unsigned turn;               /* packets taken since duplex_turn */
    struct bytes rest;           /* of the packet in `in` */
    bool first;
    struct packet gathered; /* for the socket */
    uint8_t in[FRAME_MAX_BYTES];
};

/* The socket stays the caller's. queue_max: bytes that may wait for the other side. */
void duplex_init(struct duplex *d, int fd, size_t queue_max, bool gathers);
void duplex_finish(struct duplex *d);

/* ---- rings ---- */

/* Makes rings. What is to be sent to the other end, in ret_fds, stays ours. ERR_IO: nothing has
 * changed. */
int duplex_make(struct duplex *d, struct frame_fds *ret_fds, struct err *e);
/* They were sent, over the socket: what is sent from now on waits for the answer. */
void duplex_offered(struct duplex *d);
void duplex_refused(struct duplex *d); /* gives them up; what waits goes over the socket */
/* Takes the other end's (fds->count is 0 then). Nothing is sent over them yet. */
int duplex_adopt(struct duplex *d, struct frame_fds *fds, struct err *e);
/* From now on both directions are rings. Rings our own bell: there may be something. */
void duplex_join(struct duplex *d);
/* The adopter: gives up rings whose maker is gone, what it has not taken, and packets without a
 * marker, and it has not `failed` any more. The packet that duplex_look found comes next.
 * `rings.bell` is closed: not watched. */
void duplex_leave(struct duplex *d);
/* NULL: no rings. Lives until duplex_leave or duplex_finish. */
struct duplex_beat *duplex_beat(const struct duplex *d);

/* ---- out ---- */

/* Gathers, sends or queues a frame; descriptors in `fds` (may be NULL) stay the caller's.
 * ERR_NOMEM, ERR_IO (of a descriptor): it is not sent, and nothing else has changed. With `failed`:
 * ERR_LIMIT (the queue is full), ERR_IO, ERR_PROTOCOL. */
int duplex_send(struct duplex *d, struct bytes frame, const struct frame_fds *fds, struct err *e);
/* Lets the other side see what was gathered; a failure is for good. */
int duplex_flush(struct duplex *d, struct err *e);
/* Sends of what waits as much as goes: when the socket is writable (DUPLEX_BY_SOCKET) or the bell
 * was rung. duplex_flush is to follow. A failure is for good. */
int duplex_resume(struct duplex *d, struct err *e);

/* ---- in ---- */

enum { DUPLEX_END = 2 };

/* Before frames are taken because the bell was rung. */
void duplex_turn(struct duplex *d);
/* The next frame, a copy that is valid until the next call; its descriptors (ret_fds->count is 0
 * before) are the caller's. 1: there is one; 0: none now; DUPLEX_END: the socket's end. < 0:
 * without `failed` a packet that is none, the next one may be asked for. */
int duplex_next(struct duplex *d, struct bytes *ret_frame, struct frame_fds *ret_fds,
                struct err *e);
/* Behind the last of a turn: gives room back, and has our bell rung for what is left. */
void duplex_settle(struct duplex *d);
void duplex_again(struct duplex *d); /* rings our own bell */
/* The other side has ended and its ring is empty: what is left is in the socket. */
void duplex_by_socket(struct duplex *d);
/* The socket is readable though rings are there. 0: nothing, or a packet that its marker will ask
 * for; 1: another process speaks: take what is in the ring, then duplex_leave; DUPLEX_END. */
int duplex_look(struct duplex *d, struct err *e);

#endif
