/* The two sides that carry out the same plans in turns: gpud, and the API of its back end in this
 * process. Ends the process if gpud cannot be opened. Thread: one. */
#ifndef BENCH_SIDES_H
#define BENCH_SIDES_H

#include "bench/common/gpud.h"
#include "bench/common/plan.h"
#include "bench/common/report.h"

struct side {
    const struct engine_kind *kind;
    struct engine *engine; /* owned */
    struct work *work;     /* the plan that is measured; its preparer's */
    const char *name;
};

/* 2, or 1 where the API is not there; the report then says why. */
unsigned sides_open(struct side sides[2], const struct gpud *g, struct report *r);
void sides_close(struct side *sides, unsigned count);

#endif
