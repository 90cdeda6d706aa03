/*
 * Structs shared by the files of lanes: lane.c handles one lane, lanes.c all lanes of the loop,
 * lane_lists.c the lists of lanes. Thread: the loop's.
 */
#ifndef FRONT_CLIENTS_LANE_INT_H
#define FRONT_CLIENTS_LANE_INT_H

#include "common/memfd.h"
#include "daemon/front/clients/lane.h"
#include "daemon/front/model/op.h"
#include "daemon/front/model/request.h"
#include "proto/lane.h"

/* An answer that waits for room. */
struct lane_out {
    struct lane_out *next;
    uint32_t id;
    uint64_t seq; /* number of the op that keeps the answer; 0: the answer is in `data` */
    size_t size;
    uint8_t data[];
};

struct lane {
    struct lane *prev, *next; /* in lanes->all */
    struct lane *ready_prev, *ready_next;
    struct lane *dirty_next;
    struct lane *polled_prev, *polled_next;
    struct lanes *lanes;
    struct session *session; /* NULL: closed while it had its turn */
    struct memfd memory;
    int bell;            /* eventfd that the client rings */
    struct bell *ear;    /* watches `bell`; owned */
    int client_bell;     /* doorbell of the client */
    uint64_t round;      /* of its turn (round_next); valid while it is ready */
    bool ready;          /* in lanes->ready */
    bool polled;         /* in lanes->polled: it does not sleep, so its client does not ring */
    bool dirty;          /* in lanes->dirty */
    bool belled;         /* its bell was rung since its last turn */
    unsigned idle_bells; /* successive rings of the bell without a record */
    struct ring_consumer in;
    struct ring_producer out;
    struct lane_out *waiting; /* oldest first */
};

struct lanes {
    uv_loop_t *loop;
    struct lanes_options options;
    struct lanes_callbacks callbacks;
    void *data;
    uv_idle_t idle; /* keeps the loop from sleeping while a lane has more records, or lanes spin */
    bool closing;
    struct lane *all;
    struct lane *ready; /* by round */
    uint64_t round;     /* of the last turn */
    struct lane *dirty;
    struct lane *polled;    /* checked while lanes spin */
    struct lane *current;   /* has its turn; NULL: none */
    uint64_t spin_until_ns; /* 0: no lane is polled */
    struct lanes_stats stats;
};

enum lane_state { LANE_IDLE, LANE_MORE, LANE_CLOSED };

/* lane.c */
enum lane_state lane_turn(struct lane *lane, unsigned batch, bool spins);
void lane_publish(struct lane *lane);
void lane_ring(struct lane *lane);
void lane_reap(struct lane *lane); /* frees a lane that was closed in its own turn */

/* lane_lists.c */
void lanes_awake(struct lanes *l);    /* keeps the loop from sleeping */
void lanes_wake(struct lane *lane);   /* gives it a turn */
void lanes_dirty(struct lane *lane);  /* notes that it has answers to publish */
void lane_poll(struct lane *lane);    /* polls it for a while */
void lane_unready(struct lane *lane); /* takes back its turn */
void lane_unpoll(struct lane *lane);  /* stops polling it */
void lanes_forget(struct lane *lane); /* removes it from all lists */
/* Has this turn of the loop room for another record? */
bool lanes_more(const struct lanes *l, bool first);

#endif
