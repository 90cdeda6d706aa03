/*
 * The runs of a campaign: each fails one call of one kind in one process, during one act. First
 * every act is recorded, which tells how many calls there are.
 *
 * Thread: one.
 */
#ifndef TORTURE_CAMPAIGN_H
#define TORTURE_CAMPAIGN_H

#include "tests/torture/session.h"

#define ANY          UINT32_MAX
#define WHOLE_ACT    UINT64_MAX /* this call and all that follow in the act */
#define FAILURES_MAX 6u

struct options {
    const char *device;
    uint32_t role, act, kind; /* ANY: all */
    uint64_t first, last;     /* calls */
    uint64_t count;           /* that fail in a row, 1, 2, 4, 16, WHOLE_ACT; 0: each of these */
    uint64_t slice, slices;   /* of the runs, only those of this remainder */
    uint64_t seconds;         /* after which no run begins; 0: all runs */
    bool plan;                /* only tell how many runs there are */
};

struct run {
    enum act act;
    enum role role;
    enum kind kind;
    uint64_t n, count;
};

#define HOLDERS 4u
struct holdings {
    pid_t pid[HOLDERS];
    struct holding has[HOLDERS];
    int64_t files;
};

#define BATCH 32u /* runs between two looks for leaks */

struct campaign {
    struct house h;
    struct options o;
    uint64_t calls[ACT_COUNT][ROLE_COUNT][KIND_COUNT]; /* recorded */
    uint64_t runs[ROLE_COUNT][KIND_COUNT];             /* in which the call was reached */
    uint64_t acts[ACT_COUNT];                          /* the same */
    uint64_t unreached, worker_ends, launcher_ends, failures;
    uint64_t begin_ns, told_ns, end_ns;
    int64_t files_ended;    /* house_files after the end of a daemon */
    bool at_home;           /* the daemon runs and is as it should be */
    struct holdings before; /* the runs of `batch` */
    struct run batch[BATCH];
    unsigned batch_count;
};

/* Runs all that the options choose; how many broke a promise. */
uint64_t campaign_run(struct campaign *c);

/* ---- report.c ------------------------------------------------------------------------------- */

void report_calls(const struct campaign *c);
void report_plan(const struct campaign *c, uint64_t runs);
void report_progress(struct campaign *c); /* now and then */
void report_failure(struct campaign *c, const struct run *run, const char *problem);
void report_end(const struct campaign *c);
const char *role_name(enum role role);
const char *kind_name(enum kind kind);

#endif
