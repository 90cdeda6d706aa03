/*
 * A benchmark's report: figures, each with the median and the spread over the repetitions. A figure
 * can have a ratio to a floor (a reference figure of the same repetitions). As a table or as JSON.
 * Thread: one.
 */
#ifndef BENCH_COMMON_REPORT_H
#define BENCH_COMMON_REPORT_H

#include <stdbool.h>

#include "bench/common/samples.h"

#define FIGURES_MAX     512u
#define FIGURE_TEXT     48u
#define REPORT_LEFT_OUT 16u
#define REPORT_LINE     160u

/* One figure: a value of each repetition. */
struct figure {
    char part[FIGURE_TEXT];   /* "one cpu" */
    char what[FIGURE_TEXT];   /* "null job, nng lane" */
    char figure[FIGURE_TEXT]; /* "p50" */
    char unit[16];            /* "us"; "" for counts and ratios */
    struct samples value;     /* of each repetition, in order until the report is written */
    struct samples ratio;     /* of each repetition; empty: no floor */
    double quiet;             /* the ratio of the best values, the least disturbed ones */
    char against[FIGURE_TEXT];
};

struct report {
    const char *name;    /* "latency" */
    const char *command; /* how it was called */
    bool smoke;
    unsigned count;
    struct figure *figure; /* owned */
    unsigned left_out_count;
    char left_out[REPORT_LEFT_OUT][REPORT_LINE];
};

void report_init(struct report *r, const char *name, const char *command, bool smoke);
void report_finish(struct report *r);
/* One repetition's value; figures appear in the order of their first value. */
void report_add(struct report *r, const char *part, const char *what, const char *figure,
                const char *unit, double value);
/* Adds a ratio, repetition by repetition, to another figure of the same part and name. Both must
 * have the same number of values. */
void report_against(struct report *r, const char *part, const char *what, const char *figure,
                    const char *floor);
/* The median so far; 0: no values. */
double report_median(struct report *r, const char *part, const char *what, const char *figure);
/* Records that something was not measured, and the reason. */
void report_left_out(struct report *r, const char *what, const char *why);
void report_write(struct report *r, bool json);

#endif
