/*
 * Starts a gpud for the benchmark, in its own directory, and finds its processes. Ends the process
 * (and with it gpud) if gpud does not start. Thread: one.
 */
#ifndef BENCH_GPUD_H
#define BENCH_GPUD_H

#include <gpud/gpud.h>
#include <stdint.h>
#include <sys/types.h>

#include "bench/common/machine.h"

#define GPUD_ARGS_MAX 16u
#define GPUD_WORKERS  16u

/* The environment variable with the back end of gpud's first device, set once gpud runs. Processes
 * that a benchmark starts inherit it. */
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

/* The folder for caches of compiled device code: BENCH_CACHE_DIR, else beside the build. */
const char *gpud_cache(void);
/* Starts gpud with its usual options and `args` (the last one NULL); waits until it is ready. */
void gpud_start(struct gpud *g, const char *const *args);
/* Sends SIGTERM, waits for the end, and removes the directory. */
void gpud_stop(struct gpud *g);
void gpud_place(const struct gpud *g, enum placement p);
uint64_t gpud_cpu_ns(const struct gpud *g); /* of front, launcher and workers */

#endif
