/*
 * What a tenant's own limits let pass to workers: jobs in flight, and bytes that its jobs transfer
 * in a second. sched/gate.h has the rules. Thread: the loop's.
 */
#ifndef FRONT_MODEL_GATE_H
#define FRONT_MODEL_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/heap.h"
#include "daemon/front/model/agenda.h"

struct tenant;

enum gate_line {
    GATE_FLIGHT,   /* as many of its jobs are in flight as may be */
    GATE_TRANSFER, /* its last transfers are not paid for */
    GATE_LINES,
};

/* Zeroed at the start: open. */
struct gate {
    struct heap held[GATE_LINES]; /* jobs that only the limit keeps from being ready, by rank */
    unsigned offered[GATE_LINES]; /* jobs of that line that are ready again, and were not tried */
    unsigned held_count;
    unsigned flying;       /* jobs that workers have */
    uint64_t paid_ns;      /* when its transfers are paid for */
    struct heap_entry due; /* in front->gates while jobs are held: when to look again */
};

/* The place of a job at its tenant's gate. */
struct job_gate {
    struct heap_entry entry; /* in gate.held */
    enum gate_line line;     /* valid while it is held, or offered */
    bool offered;            /* it counts in gate.offered */
};

static inline bool gate_holds(const struct gate *g)
{
    return g->held[GATE_FLIGHT].first != NULL || g->held[GATE_TRANSFER].first != NULL;
}

/* Something changed that may let held jobs of the tenant, whose gate this is, go. gates: the
 * front's. */
static inline void gate_look(struct agenda *gates, struct gate *g, struct tenant *t)
{
    if (gate_holds(g)) {
        agenda_set(gates, &g->due, 0, t);
    }
}

#endif
