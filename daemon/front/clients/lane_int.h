/*
 * Shared by the files of lanes: lane.c has one lane, lanes.c all lanes on their loop, lane_lists.c
 * the lists of lanes. Thread: the loop's.
 */
#ifndef FRONT_CLIENTS_LANE_INT_H
#define FRONT_CLIENTS_LANE_INT_H

#include "common/memfd.h"
#include "daemon/front/clients/lane.h"
#include "daemon/front/model/op.h"
#include "daemon/front/model/request.h"
#include "proto/lane.h"

/* An answer that found no room. */
struct lane_out {
    struct lane_out *next;
    uint32_t id;
    uint64_t seq; /* number of the op that has the bytes; 0: they are in `data` */
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
    bool ready;          /* in lanes->ready */
    bool polled;         /* in lanes->polled: it does not sleep, so its client does not ring */
    bool dirty;          /* in lanes->dirty */
    bool belled;         /* its bell was rung since its last turn */
    unsigned idle_bells; /* in a row, without a record */
    struct ring_consumer in;
    struct ring_producer out;
    struct lane_out *waiting; /* oldest first */
};

struct lanes {
    uv_loop_t *loop;
    struct lanes_options options;
    struct lanes_callbacks callbacks;
    void *data;
    uv_idle_t idle; /* keeps the loop from sleeping while a lane has more, or lanes spin */
    bool closing;
    struct lane *all;
    struct lane *ready;
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
void lane_reap(struct lane *lane); /* frees a lane that was closed in its turn */

/* lane_lists.c */
void lanes_awake(struct lanes *l);    /* the loop does not sleep: a lane has more, or lanes spin */
void lanes_wake(struct lane *lane);   /* it gets a turn */
void lanes_dirty(struct lane *lane);  /* it has answers to publish */
void lane_poll(struct lane *lane);    /* it is polled for a while */
void lane_unready(struct lane *lane); /* it gets no turn now */
void lane_unpoll(struct lane *lane);  /* it is not polled any more */
void lanes_forget(struct lane *lane); /* it leaves all lists */
bool lanes_more(const struct lanes *l,
                bool first); /* has this turn of the loop room for another record? */

#endif
