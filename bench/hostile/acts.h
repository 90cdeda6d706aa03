/*
 * What a hostile tenant does beside a good one. Each act runs in processes of its own until they
 * are killed, with the least priority, so that their own work is not taken for the daemon's.
 * Thread: one. Errors of gpud are expected; others end the process.
 */
#ifndef BENCH_HOSTILE_ACTS_H
#define BENCH_HOSTILE_ACTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Shared by all processes of an act. */
struct act_tally {
    atomic_ulong done;    /* what the daemon did for it */
    atomic_ulong refused; /* what it did not */
};

struct act {
    const char *name;
    const char *unit;   /* of what is counted */
    unsigned processes; /* at the same time */
    double each;        /* units of one that is done */
    bool compiles;      /* it needs a device that compiles */
    bool paused; /* the daemon pauses its tenant, so it has one of its own, and is not done with
                    others */
    void (*work)(const char *url, struct act_tally *tally); /* does not return */
};

extern const struct act acts[];
extern const unsigned act_count;

/* For partner_start: `hostile` is a struct hostile. Writes a byte before it begins. */
struct hostile {
    const struct act *act;
    const char *url;
    struct act_tally *tally;
};
void act_work(const void *hostile, int in, int out);

#endif
