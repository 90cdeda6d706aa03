/*
 * The shared memory of a session's ring lane (PROTOCOL.md, "Rings"): a head, the control words of
 * two rings, then the bytes of the rings. Each layout has its own version.
 */
#ifndef PROTO_LANE_H
#define PROTO_LANE_H

#include "common/ring.h"

#define LANE_VERSION 2u

#define LANE_SUBMIT_BYTES   8192u /* ring of requests */
#define LANE_COMPLETE_BYTES 8192u /* ring of answers */
#define LANE_DATA_OFFSET    4096u /* bytes from the start: ring of requests, then ring of answers */
#define LANE_BYTES          (LANE_DATA_OFFSET + LANE_SUBMIT_BYTES + LANE_COMPLETE_BYTES)

/* Descriptors that come with GRANTED, in this order. */
enum lane_fd {
    LANE_FD_MEMORY,
    LANE_FD_DAEMON_BELL, /* an eventfd: the client rings it by a write */
    LANE_FD_CLIENT_BELL, /* a doorbell (common/doorbell.h): the daemon rings it by a read */
    LANE_FDS,
};

struct lane_shared {
    _Alignas(RING_LINE) atomic_uint closed; /* by the daemon: an error's code negated; 0: open */
    atomic_uint left;                       /* by the client: 1: it left the lane; 0: it uses it */
    struct ring_control submit;
    struct ring_control complete;
};

_Static_assert(sizeof(struct lane_shared) == 5 * RING_LINE, "layout of version 2");
_Static_assert(offsetof(struct ring_control, full) == 4, "layout of version 2");
_Static_assert(offsetof(struct ring_control, tail) == RING_LINE, "layout of version 2");
_Static_assert(offsetof(struct ring_control, sleep) == RING_LINE + 4, "layout of version 2");

#endif
