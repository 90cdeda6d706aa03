/*
 * Servers of round trips, and one measurement of them. Every client is a process of its own, forked
 * before there are threads. All begin at the same time, after each has warmed up.
 * Thread: one. Ends the process if anything fails. Blocks until the measurement is over.
 */
#ifndef BENCH_TRIAL_H
#define BENCH_TRIAL_H

#include <stdint.h>
#include <sys/types.h>

#include "bench/common/echo.h"
#include "bench/common/machine.h"

struct server {
    const struct echo_kind *kind;
    pid_t pid;
    char address[96];
};

/* dir: for the server's socket; outlives the server. */
void server_start(struct server *s, const struct echo_kind *kind, const char *dir);
void server_stop(struct server *s);

struct trial {
    const struct echo_kind *kind;
    const char *address;
    const char *lane; /* for gpud: GPUD_LANE of the clients; NULL: unchanged */
    enum placement place;
    unsigned sessions;                             /* clients */
    unsigned outstanding;                          /* round trips of each at once */
    unsigned warm;                                 /* unmeasured round trips of each client */
    unsigned count;                                /* measured round trips of each client */
    uint64_t (*served_cpu_ns)(const void *server); /* the server's CPU time; NULL: not measured */
    const void *server;
};

struct trial_result {
    double p50_us; /* of a round trip; the median over the clients */
    double p99_us;
    double rate;            /* round trips a second of all clients */
    double client_us;       /* CPU time of a round trip in its client */
    double served_us;       /* CPU time of a round trip in the server */
    double client_switches; /* voluntary context switches of a round trip in its client */
};

void trial_run(const struct trial *t, struct trial_result *ret_result);

#endif
