/*
 * Replays traces with a policy whose memory is limited. Each buffer has a stream, by its number. A
 * free is complete once `behind` later frees of its stream were issued. A policy that knows streams
 * gets the free at once, and the other policies when it is complete. A refused buffer does not
 * exist: its end is skipped.
 */
#ifndef BENCH_POOL_REPLAY_H
#define BENCH_POOL_REPLAY_H

#include "bench/pool/load.h"
#include "bench/pool/policy.h"

struct replay {
    struct policy policy;
    unsigned streams;
    uint64_t behind;
    struct pool_piece *piece; /* by buffer */
    bool *live;
    uint64_t point[POLICY_STREAMS];             /* frees so far */
    struct pool_piece *pending[POLICY_STREAMS]; /* the last `behind` frees, if not ordered */
    uint64_t requests, refused;
    uint64_t calls; /* of the driver before this round */
};

/* `behind` 0: frees are complete at once. Ends the program if there is no memory. */
void replay_init(struct replay *r, enum policy_kind kind, uint64_t limit, unsigned streams,
                 uint64_t behind, uint32_t buffers);
void replay_finish(struct replay *r);

void replay_event(struct replay *r, const struct event *v);
/* All events; afterwards replay_calls() are those of this round. */
void replay_round(struct replay *r, const struct trace *t);
/* The same; *ret_ns (one for each event) are the times of the events, sorted. */
void replay_round_timed(struct replay *r, const struct trace *t, uint64_t *ret_ns);
/* 0 if the policy has no calls. */
uint64_t replay_calls(const struct replay *r);
uint64_t replay_waits(const struct replay *r);

/* A percentile of `count` sorted values. */
uint64_t replay_percentile(const uint64_t *sorted, size_t count, unsigned percent);

/* Calls `use` with each trace of a part: made traces and the files of the folder. `use` does not
 * finish the trace. */
void replay_traces(const char *folder, unsigned made,
                   void (*use)(void *user, const char *name, struct trace *t), void *user);

/* The limit at which the peak of a trace takes 97% of the memory, or is exceeded by a quarter. */
uint64_t replay_limit_97(const struct trace *t);
uint64_t replay_limit_125(const struct trace *t);

#endif
