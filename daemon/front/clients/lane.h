/*
 * Ring lanes. A lane is two rings in shared memory for a session on the same host, one for requests
 * and one for answers, with a doorbell each. The rings hold the messages of PROTOCOL.md, and the
 * front treats them like messages of a socket.
 *
 * A client can harm only its own lane:
 * - A lane may send a limited number of records a turn; then the other lanes have their turns.
 * - No request of a lane is read while its answers wait for room.
 * - A doorbell costs one check a turn, however often it is rung.
 * - Nothing here blocks: only the daemon has the writing end of the client's bell, a pipe.
 * - A lane whose client breaks the rules is closed with an error.
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
    /* The receiver owns the request, like one of the listener. It has no slot, but `ring_id` and
     * `session`. The receiver may end the session. */
    void (*request)(void *data, struct session *s, struct request *r);
    /* The client has taken the answer out of its ring. The receiver destroys the op. */
    void (*acked)(void *data, struct op *o);
    /* The lane is about to be freed. */
    void (*closed)(void *data, struct lane *lane);
    /* Has this turn of the loop room for another record? The rest follows in later turns. `first`:
     * none was received in this turn. NULL: always. */
    bool (*more)(void *data, bool first);
    /* The next turn of the session's tenant (common/round.h). NULL: lanes take turns without regard
     * to tenants. */
    uint64_t *(*rounds)(const struct session *s);
};

struct lanes_options {
    unsigned batch;   /* records of one lane before others get their turn */
    uint64_t spin_ns; /* time after the last record in which lanes are polled without sleep */
};

struct lanes_stats {
    uint64_t lanes;    /* open now */
    uint64_t records;  /* requests received */
    uint64_t bells;    /* doorbells rung by clients */
    uint64_t rung;     /* doorbells of clients rung */
    uint64_t waited;   /* answers that found no room at first */
    uint64_t violated; /* lanes closed because the client broke the rules */
};

int lanes_create(uv_loop_t *loop, const struct lanes_options *options,
                 const struct lanes_callbacks *callbacks, void *data, struct lanes **ret_lanes,
                 struct err *e);
/* All lanes must be closed. Memory is freed when the loop has turned. NULL is accepted. */
void lanes_destroy(struct lanes *l);
void lanes_spin(struct lanes *l, uint64_t spin_ns); /* changes the option */
/* Gives each ready lane a turn. Called in every turn of the loop, after it has polled. NULL is
 * accepted, here and below. */
void lanes_turn(struct lanes *l);
/* Publishes answers to clients. Called before the loop sleeps, or sooner. */
void lanes_flush(struct lanes *l);
void lanes_stats(const struct lanes *l, struct lanes_stats *ret_stats);

/* Makes the session's lane, `s->lane`; an old one is closed. */
int lane_open(struct lanes *l, struct session *s, struct err *e);
/* The descriptors for the client, in the order of enum lane_fd. The lane owns them, and closes them
 * when the client rings for the first time. */
void lane_fds(const struct lane *lane, struct frame_fds *ret_fds);
/* Drops answers that the client has not received; the client asks for them over its socket. NULL is
 * accepted. */
void lane_close(struct lane *lane);

/* Sends the answer of `o`, which is answered and has a ring_id. `reply` is the op's own copy. An
 * answer that finds no room waits. */
void lane_answer(struct lane *lane, struct op *o, struct bytes reply);
/* Sends an answer that belongs to no op. */
void lane_reply(struct lane *lane, uint32_t ring_id, struct bytes reply);

#endif
