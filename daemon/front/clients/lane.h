/*
 * The ring lanes: for a session on the same host two rings in shared memory, requests in, answers
 * out, with a doorbell each. What stands in them are the messages of PROTOCOL.md; what is done with
 * them is the same as if they had come over a socket.
 *
 * A client can harm only itself. Each lane gets so many records a turn and then waits for the
 * others; one whose answers find no room is not read until they do; doorbells cost one look a turn,
 * however often they are rung; and nothing that is waited for here can block: the client's bell is
 * a pipe whose writing end nobody else has. A lane whose client breaks the rules is closed with an
 * error, and only this one.
 *
 * Thread: the loop's. Nothing blocks.
 */
#ifndef FRONT_CLIENTS_LANE_H
#define FRONT_CLIENTS_LANE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/bytes.h"
#include "common/err.h"
#include "common/seqpacket.h"

struct lane;
struct lanes;
struct op;
struct request;
struct session;

struct lanes_callbacks {
    /* The receiver owns the request, as one of the listener's; it has no slot, but `ring_id` and
     * `session`. It may end the session. */
    void (*request)(void *data, struct session *s, struct request *r);
    /* The client has taken the answer. The receiver destroys the op. */
    void (*taken)(void *data, struct op *o);
    /* The lane is about to go. */
    void (*closed)(void *data, struct lane *lane);
    /* Has this turn of the loop room for another record? What is left comes in the next turns.
     * `first`: nothing was taken in this turn. NULL: always. */
    bool (*more)(void *data, bool first);
};

struct lanes_options {
    unsigned batch;   /* records of one lane before others get their turn */
    uint64_t spin_ns; /* how long after the last record lanes are looked at without sleep; 0: not */
};

struct lanes_stats {
    uint64_t lanes;    /* open now */
    uint64_t records;  /* requests that came */
    uint64_t bells;    /* wake-ups by clients */
    uint64_t rung;     /* wake-ups of clients */
    uint64_t waited;   /* answers that found no room at first */
    uint64_t violated; /* lanes closed because the client broke the rules */
};

int lanes_create(uv_loop_t *loop, const struct lanes_options *options,
                 const struct lanes_callbacks *callbacks, void *data, struct lanes **ret_lanes,
                 struct err *e);
/* All lanes must be closed. Memory goes when the loop has turned. NULL is accepted. */
void lanes_destroy(struct lanes *l);
void lanes_spin(struct lanes *l, uint64_t spin_ns); /* another setting */
/* Gives each lane that has something a turn. Called in every turn of the loop, after it has
 * polled. NULL is accepted, here and below. */
void lanes_turn(struct lanes *l);
/* Shows clients what they have not seen yet. Called before the loop sleeps, or sooner. */
void lanes_flush(struct lanes *l);
void lanes_stats(const struct lanes *l, struct lanes_stats *ret_stats);

/* Makes the session's lane, `s->lane`; an old one is closed. */
int lane_open(struct lanes *l, struct session *s, struct err *e);
/* What the client is to get, in the order of enum lane_fd; they stay the lane's, which closes them
 * when the client has first rung. */
void lane_fds(const struct lane *lane, struct frame_fds *ret_fds);
/* Answers on their way are dropped; the client asks for them over its socket. NULL is accepted. */
void lane_close(struct lane *lane);

/* Sends the answer of `o`, which is answered and has a ring_id; its bytes are the op's, which keeps
 * them. What finds no room waits. */
void lane_answer(struct lane *lane, struct op *o, struct bytes reply);
/* An answer that belongs to no op. */
void lane_reply(struct lane *lane, uint32_t ring_id, struct bytes reply);

#endif
