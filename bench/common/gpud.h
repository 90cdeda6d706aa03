/*
 * A gpud of the benchmark's own, in a directory of its own, and the processes it consists of.
 * Ends the process (and with it gpud) if it does not start. Thread: one.
 */
#ifndef BENCH_GPUD_H
#define BENCH_GPUD_H

#include <gpud/gpud.h>
#include <stdint.h>
#include <sys/types.h>

#include "bench/common/machine.h"

#define GPUD_ARGS_MAX 16u
#define GPUD_WORKERS  16u

/* In the environment once gpud runs: the back end of its first device, also for processes that are
 * started by a benchmark. */
#define GPUD_BACKEND "BENCH_BACKEND"

struct gpud {
    pid_t front;
    pid_t launcher;
    pid_t worker[GPUD_WORKERS];
    unsigned workers;
    char dir[64];
    char url[96];
    char backend[16]; /* of the first device */
    char device[128];
};

/* Where device code that was compiled once is kept: BENCH_CACHE_DIR, else beside the build. */
const char *gpud_cache(void);
/* Starts it with these options beside its own (the last one NULL) and waits until it is ready. */
void gpud_start(struct gpud *g, const char *const *args);
/* SIGTERM and the end; removes the directory. */
void gpud_stop(struct gpud *g);
void gpud_place(const struct gpud *g, enum placement p);
uint64_t gpud_cpu_ns(const struct gpud *g); /* of front, launcher and workers */

#endif
