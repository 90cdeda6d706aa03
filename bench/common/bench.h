/* The begin and end of every benchmark's main: options and report. Thread: one. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>

#include "bench/common/gpud.h"
#include "bench/common/report.h"

#define BENCH_SKIPPED 77

struct bench {
    bool json;
    bool smoke;          /* runs every part, with tiny sizes */
    unsigned repeat;     /* repetitions; in each, every side runs once */
    const char *only;    /* only parts whose name contains this; NULL: all */
    const char *backend; /* of gpud; NULL: gpud's choice */
    struct report report;
};

/* Reads the options; --help and errors end the process. repeat: the default number of repetitions;
 * a smoke test has 2. */
void bench_begin(struct bench *b, const char *name, const char *what, unsigned repeat, int argc,
                 char **argv);
int bench_end(struct bench *b); /* writes the report; returns main's exit status */
bool bench_wants(const struct bench *b, const char *part);
/* Starts gpud with the chosen back end and the options `args` (the last one NULL). Ends the process
 * with BENCH_SKIPPED if CUDA was chosen and there is no GPU. */
void bench_gpud(const struct bench *b, struct gpud *g, const char *const *args);

/* `much`, or `little` in a smoke test. */
#define bench_scale(b, much, little) ((b)->smoke ? (little) : (much))

/* The lanes that the client offers, the last one NULL. */
extern const char *const bench_lanes[];

#endif
