/* The two sides that run the same plans alternately: gpud, and the API of its back end in this
 * process. Ends the process if gpud cannot be opened. Thread: one. */
#ifndef BENCH_SIDES_H
#define BENCH_SIDES_H

#include "bench/common/gpud.h"
#include "bench/common/plan.h"
#include "bench/common/report.h"

struct side {
    const struct engine_kind *kind;
    struct engine *engine; /* owned */
    struct work *work;     /* the measured plan; belongs to the function that prepared it */
    const char *name;
};

/* Returns 2, or 1 if the API is not available; the report then has the reason. */
unsigned sides_open(struct side sides[2], const struct gpud *g, struct report *r);
void sides_close(struct side *sides, unsigned count);

#endif
