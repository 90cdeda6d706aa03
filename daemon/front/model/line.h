/*
 * The line of a device: which tenants have ready jobs for it, and what it has given to each class.
 * sched/shares.h has the rules. Thread: the loop's.
 */
#ifndef FRONT_MODEL_LINE_H
#define FRONT_MODEL_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/tournament.h"
#include "daemon/front/model/agenda.h"
#include "proto/limits.h"

/* What is ready in a class, of all tenants. predict.c keeps it. */
struct ready_sum {
    uint64_t ns;       /* that the jobs are expected to take */
    uint64_t weight;   /* of the tenants that have such jobs */
    uint64_t since_ns; /* when the first of them came, since there were none */
    unsigned unsure;   /* jobs whose times are not known */
};

/* Classes are those of enum proto_class. The first one has the jobs that go before all others
 * (queue_first). */
#define CLASS_FIRST 0u
#define CLASS_COUNT (CLASS_BATCH + 1u)

#define PORTION_UNIT UINT64_C(65536)

struct stake;

struct line {
    /* of tenants with ready jobs; some have none any more. A tenant's stake has its seats as long
     * as it lives */
    struct tournament stakes[CLASS_COUNT];
    uint64_t due[CLASS_COUNT];           /* virtual time of the tenant that is due */
    uint64_t clock[CLASS_COUNT];         /* and of the one that was when a job was taken last */
    unsigned flying[CLASS_COUNT];        /* jobs in flight */
    unsigned unsure;                     /* of them, whose times are not known */
    unsigned bound;                      /* ready jobs that are bound to the device */
    struct ready_sum ready[CLASS_COUNT]; /* of the bound jobs */
    uint64_t left_job;                   /* that the device left to another one; 0: none */
    uint64_t left_ns;                    /* since when */
    uint64_t until_ns;                   /* when the jobs in flight are expected to have ended */
    bool joined;        /* every tenant with ready jobs for any device is in the line */
    int64_t owed_ns;    /* what batch jobs have yet to get, beside the jobs of other classes */
    uint64_t lively_ns; /* when a job of another class than batch was last in flight */

    /* Streams with jobs share the device equally. `portion` grows by PORTION_UNIT / streams each
     * nanosecond. */
    unsigned streams; /* with jobs in flight */
    uint64_t portion;
    uint64_t portion_ns; /* until when it is counted */

    struct agenda capped;   /* stakes that wait for their caps, by when they may go */
    struct stake *spenders; /* that used the device since its energy was last divided */
};

/* Frees it, without tenants' stakes. */
static inline void line_finish(struct line *l)
{
    for (unsigned class = 0; class < CLASS_COUNT; class ++) {
        tournament_finish(&l->stakes[class]);
    }
}

/* Counts the time until now. To be called before `streams` changes. */
static inline void line_pass(struct line *l, uint64_t now_ns)
{
    if (l->streams > 0 && now_ns > l->portion_ns) {
        l->portion += (now_ns - l->portion_ns) * (PORTION_UNIT / l->streams);
    }
    l->portion_ns = now_ns;
}

#endif
