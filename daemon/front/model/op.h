/*
 * The admitted requests of a session by number. Each is an op from its admission until the client
 * acknowledges its answer. Thread: the loop's.
 *
 * Where an op is:
 *
 *   pending → answered   the front has the answer, and keeps it for a client that asks again
 *   answered → in ring   the answer is in the session's ring
 *   in ring → answered   the ring was closed; or the client took the answer out of the ring before
 *                        the number had its turn
 *
 * It is destroyed when the client acknowledges the answer (an ack, TAKEN, or taking it out of the
 * ring), or with its session. An op without a number is known to its handler alone, and destroyed
 * when it is answered.
 */
#ifndef FRONT_MODEL_OP_H
#define FRONT_MODEL_OP_H

#include "daemon/front/model/session.h"

#define OPS_MAX  16384u /* of a session */
#define OP_SMALL 64u    /* bytes of an answer that needs no memory of its own */

enum op_state {
    OP_PENDING,
    OP_ANSWERED,
    OP_IN_RING, /* up to ring_end */
    OP_STATES,
};

struct op {
    uint64_t seq; /* key; 0: no number, and in no table */
    struct session *session;
    enum op_state state;        /* changed by op_step alone */
    struct listener_slot *slot; /* where the answer goes; NULL: disconnected, answered or ring */
    uint32_t ring_id;           /* id of the request in the session's ring; 0: not to the ring */
    uint32_t ring_end;          /* in ring: position in the ring behind this answer */
    struct op *ring_prev, *ring_next; /* in ops.in_ring */
    struct op *open_prev, *open_next; /* in ops.open, while pending */
    uint8_t *reply;                   /* owned, or `small`; NULL: pending, or no memory for it */
    size_t reply_size;                /* bytes */
    uint8_t small[OP_SMALL];
    uint64_t job; /* id of the job that it submitted; 0: none */
    UT_hash_handle hh;
};

/* NULL: no op of that number, or one that is acknowledged and awaits its sweep. */
struct op *op_find(struct session *s, uint64_t seq);
/* Make a pending op. slot: where its answer goes; may be NULL. NULL: no memory. */
struct op *op_create(struct session *s, uint64_t seq, struct listener_slot *slot);
struct op *op_create_unnumbered(struct session *s, struct listener_slot *slot);
/* The one way to change the state. A step that the table lacks ends the process. */
void op_step(struct op *o, enum op_state to);
/* Keeps a copy of the answer. false: no memory for the copy; the op counts as answered all the
 * same. */
bool op_answer(struct op *o, struct bytes reply);
/* The answer was written into the session's ring. ring_end: the position behind it. */
void op_enter_ring(struct op *o, uint32_t ring_end);
void op_leave_ring(struct op *o); /* not in it: nothing happens */
void op_destroy(struct op *o);

static inline bool op_unnumbered(const struct op *o)
{
    return o->seq == 0;
}

static inline bool op_answered(const struct op *o)
{
    return o->state != OP_PENDING;
}

/* An ack covers the number: its answer will not be asked for again. */
bool op_acked(const struct op *o);
/* HELLO said that the client has the answer, which an earlier front gave. */
bool op_answered_before(const struct op *o);
/* An earlier front answered the number, and the client has acknowledged the answer. */
bool session_acked_before(const struct session *s, uint64_t seq);

/* For a new front, once all ops of the session are adopted: sorts them, so that session_skip passes
 * their answers range by range. Without memory session_skip passes them one by one. */
void session_index_answers(struct session *s);
/* Moves order.expect past numbers that need not come: acknowledged ones, and those that have an op
 * (`answered`: an answered op). Returns how many ranges and ops it visited, plus one. */
uint64_t session_skip(struct session *s, bool answered);
/* The session's lane is closed. The client asks for answers on their way again, over its socket. */
void session_lane_closed(struct session *s);

#endif
