/*
 * What the GPU suite found out, item by item: a line on stdout, one of JSON and one of Markdown.
 *
 * GPU_RECORD names the folder that holds them (results.jsonl, results.rows); without it only stdout
 * is written. GPU_DOUBLE=1: the driver is a double. Then figures say nothing about a GPU and no
 * target is judged. Thread: one. Blocks (files).
 */
#ifndef GPU_RECORD_H
#define GPU_RECORD_H

#include <stdbool.h>

#define RECORD_FIGURES 24
#define RECORD_TEXT    512

enum record_bound { RECORD_FREE = 0, RECORD_AT_LEAST = 1, RECORD_AT_MOST = 2 };

struct record_figure {
    char name[64];
    char unit[16];
    double value;
    enum record_bound bound; /* FREE: a figure without a target */
    double target;
};

struct record {
    char item[64];
    char note[RECORD_TEXT]; /* "" = none */
    unsigned count;
    struct record_figure figure[RECORD_FIGURES];
};

void record_begin(struct record *r, const char *item);
/* What the figures do not say; a later call replaces it. */
void record_note(struct record *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void record_figure(struct record *r, const char *name, double value, const char *unit);
void record_target(struct record *r, const char *name, double value, const char *unit,
                   enum record_bound bound, double target);
/* Passed, unless a target was missed: then failed, and the reason names it. True if passed. */
bool record_end(const struct record *r);
/* The reason is recorded as it is. */
void record_failed(const struct record *r, const char *reason);
void record_skipped(const struct record *r, const char *reason);

bool record_is_double(void);
/* GPU_QUICK=1: the shorter of two counts. */
unsigned record_effort(unsigned quick, unsigned full);

#endif
