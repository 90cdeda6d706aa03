/* What every benchmark's main begins and ends with. Thread: one. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>

#include "bench/common/gpud.h"
#include "bench/common/report.h"

#define BENCH_SKIPPED 77

struct bench {
    bool json;
    bool smoke;          /* every part, with sizes that take no time */
    unsigned repeat;     /* repetitions; in each, every side runs once */
    const char *only;    /* parts whose name holds this; NULL: all */
    const char *backend; /* of gpud, NULL: its choice */
    struct report report;
};

/* Reads the options; --help and mistakes end the process. The number of repetitions is `repeat`
 * unless it is given, 2 in a smoke test. */
void bench_begin(struct bench *b, const char *name, const char *what, unsigned repeat, int argc,
                 char **argv);
int bench_end(struct bench *b); /* writes the report; what main returns */
bool bench_wants(const struct bench *b, const char *part);
/* Starts gpud with the chosen back end and these options beside (the last one NULL). Ends the
 * process with BENCH_SKIPPED if CUDA was chosen and there is no GPU. */
void bench_gpud(const struct bench *b, struct gpud *g, const char *const *args);

/* One of two: how much, or little for a smoke test. */
#define bench_scale(b, much, little) ((b)->smoke ? (little) : (much))

/* The lanes that the client offers, the last one NULL. */
extern const char *const bench_lanes[];

#endif
