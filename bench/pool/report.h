/* Measurements: rows of (part, case, policy, figure, value), as a table or as JSON. */
#ifndef BENCH_POOL_REPORT_H
#define BENCH_POOL_REPORT_H

#include <stdbool.h>

#define REPORT_ROWS 8192u

struct row {
    const char *part; /* these texts outlive the report */
    char name[40];
    const char *policy;
    const char *figure;
    double value;
};

struct report {
    struct row row[REPORT_ROWS];
    unsigned count;
};

void report_add(struct report *r, const char *part, const char *name, const char *policy,
                const char *figure, double value);
void report_table(const struct report *r);
void report_json(const struct report *r);

#endif
