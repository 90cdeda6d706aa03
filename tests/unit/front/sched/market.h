/*
 * A device without a worker, for tests of shares: jobs of several tenants take its streams for
 * times that the test knows. Streams with jobs share the device equally. Time is virtual.
 *
 * A seller may have a domain, a worker of its own. A device goes from one worker to another in
 * switch_ns, in which it does nothing.
 */
#ifndef TEST_MARKET_H
#define TEST_MARKET_H

#include "daemon/front/model/front.h"

#define MARKET_TENANTS 64u
#define MARKET_STREAMS 4u

/* A tenant that always has jobs ready, or that sends one when its last one has ended. */
struct seller {
    struct tenant *tenant;
    unsigned class;
    unsigned backlog;                   /* jobs that are ready or in flight; it may grow */
    uint64_t least_ns, most_ns;         /* of a job; times between them have equal logarithms */
    uint64_t pause_ns;                  /* between the end of a job and the next one, on average */
    uint64_t idle_ns;                   /* in which a stream does nothing before each job */
    int device;                         /* -1: any */
    struct device *domain;              /* on that device; NULL: none. Owned */
    uint64_t kind;                      /* of its jobs; 0: their times are not learnt */
    bool by_size;                       /* they are of other kinds by their sizes */
    double noise;                       /* of the time of a job, either way: 0.2 is 20 % */
    uint64_t every_ns;                  /* it sends a job so often, on average; 0: see `backlog` */
    uint64_t due_least_ns, due_most_ns; /* its jobs have deadlines; 0: none */
    unsigned offered;                   /* of `backlog` */
    uint64_t next_ns;                   /* when the pause is over; 0: there is none */
    /* what it got */
    uint64_t had_ns; /* of device time */
    uint64_t jobs;
    uint64_t refused, missed; /* jobs, because of their deadlines; missed: admitted before */
    struct accuracy ends;     /* of the times until their ends, as predicted when they came */
    uint64_t *waits;          /* owned; of each job, until its end */
    size_t wait_count, wait_room;
};

struct market {
    struct front f;
    struct device device[DEVICES_MAX];
    double speed[DEVICES_MAX]; /* 1: a job takes its time */
    unsigned devices, streams, window;
    uint64_t switch_ns;
    struct {
        const struct device *last; /* whose job it had last */
        uint64_t free_ns;          /* when the last switch was over */
        uint64_t switches, met;    /* met: jobs that began beside those of another worker */
        uint64_t busy_ns;
    } hardware[DEVICES_MAX];
    struct seller seller[MARKET_TENANTS];
    unsigned sellers;
    uint64_t random;
    struct job *free_jobs;
    struct job **all; /* owned, with the jobs */
    size_t all_count, all_room;
};

struct market *market_create(unsigned devices, unsigned streams, unsigned window);
void market_destroy(struct market *m);
/* A seller of this weight; the caller sets the rest before market_run. */
struct seller *market_add(struct market *m, uint64_t weight, unsigned class);
/* The seller gets a worker of its own on its device. */
void market_apart(struct market *m, struct seller *s);
/* Lets so much time pass. */
void market_run(struct market *m, uint64_t ns);
/* The time that so many percent of its jobs took at most, from ready to the end. */
uint64_t market_wait_ns(struct seller *s, double percent);

#endif
