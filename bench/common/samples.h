/* Measured times and their statistics. Thread: one. Ends the process if memory is out. */
#ifndef BENCH_SAMPLES_H
#define BENCH_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

struct samples {
    double *value; /* owned */
    unsigned count;
    unsigned room;
    bool sorted;
};

void samples_init(struct samples *s);
void samples_finish(struct samples *s);
void samples_add(struct samples *s, double value);
/* The quantile of this share (0 to 1); 0 without values. Sorts the values. */
double samples_at(struct samples *s, double share);
double samples_median(struct samples *s);

#endif
