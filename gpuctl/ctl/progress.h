/* A progress bar on standard error for transfers that take a while. */
#ifndef GPUCTL_CTL_PROGRESS_H
#define GPUCTL_CTL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include <gpud/gpud.h>

#define PROGRESS_BYTES (UINT64_C(16) << 20) /* smaller transfers show no bar */

struct progress {
    const char *what; /* not owned */
    int percent;      /* shown last; -1: no bar is shown */
};

/* The options of a transfer that reports to `progress`; no bar without `terminal`. */
gpud_transfer progress_transfer(struct progress *progress, const char *what, bool terminal);
/* Removes the bar. */
void progress_finish(struct progress *progress);

#endif
