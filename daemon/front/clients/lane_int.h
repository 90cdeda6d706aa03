/*
 * What the lanes' files share: lane.c is one of them, lanes.c all on their loop, lane_lists.c what
 * both put lanes into.
 * Thread: the loop's.
 */
#ifndef FRONT_CLIENTS_LANE_INT_H
#define FRONT_CLIENTS_LANE_INT_H

#include "common/memfd.h"
#include "daemon/front/clients/lane.h"
#include "daemon/front/model/request.h"
#include "daemon/front/model/session.h"
#include "proto/lane.h"

/* An answer that found no room. */
struct lane_out {
    struct lane_out *next;
    uint32_t id;
    uint64_t seq; /* of the op that has the bytes; 0: they are here */
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
    int bell;         /* eventfd; the client rings */
    struct bell *ear; /* listens to it; owned */
    int client_bell;  /* the writing end of a pipe */
    int client_end;   /* its reading end, until the client has it */
    bool ready;       /* in lanes->ready */
    bool polled;      /* in lanes->polled: it does not sleep, so nobody rings */
    bool dirty;       /* in lanes->dirty */
    bool belled;      /* since its last turn */
    bool hung_up;     /* the client has closed its end of the bell */
    unsigned idle_bells;
    struct ring_consumer in;
    struct ring_producer out;
    struct lane_out *waiting; /* oldest first */
};

struct lanes {
    uv_loop_t *loop;
    struct lanes_options options;
    struct lanes_callbacks callbacks;
    void *data;
    int epoll; /* of all lanes: has the client closed its end of its bell? */
    uv_poll_t poll;
    uv_idle_t idle; /* keeps the loop from sleeping while a lane has more, or lanes spin */
    unsigned handles_open;
    bool closing;
    struct lane *all;
    struct lane *ready;
    struct lane *dirty;
    struct lane *polled;    /* looked at while lanes spin */
    struct lane *current;   /* has its turn */
    uint64_t spin_until_ns; /* 0: nobody is polled */
    struct lanes_stats stats;
};

enum lane_state { LANE_IDLE, LANE_MORE, LANE_GONE };

/* lane.c */
enum lane_state lane_turn(struct lane *lane, unsigned batch, bool spins);
void lane_publish(struct lane *lane);
void lane_ring(struct lane *lane);
void lane_reap(struct lane *lane); /* frees one that went in its turn */

/* lane_lists.c */
void lanes_awake(struct lanes *l);    /* the loop does not sleep: a lane has more, or lanes spin */
void lanes_wake(struct lane *lane);   /* it gets a turn */
void lanes_dirty(struct lane *lane);  /* it has something to show its client */
void lane_poll(struct lane *lane);    /* it is looked at for a while */
void lane_unready(struct lane *lane); /* it gets no turn now */
void lane_unpoll(struct lane *lane);  /* nor is it looked at */
void lanes_forget(struct lane *lane); /* it goes out of all lists */
bool lanes_more(const struct lanes *l,
                bool first); /* has this turn of the loop room for another record? */

#endif
