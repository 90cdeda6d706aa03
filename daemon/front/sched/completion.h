/*
 * The ends of jobs in flight: done or failed, as the worker reports; or, when the worker ended, run
 * again, convicted or given up (docs/faults.md). Thread: the loop's.
 */
#ifndef FRONT_SCHED_COMPLETION_H
#define FRONT_SCHED_COMPLETION_H

#include "daemon/front/model/front.h"

/* The worker reports a job's end. */
void completion_done(struct front *f, struct device *d, const struct msg_w_done *m);
/* The device's worker ended. external: not by a fault of its jobs. */
void completion_lost(struct front *f, struct device *d, bool external, const char *why);
/* Encodes the RESULT record of an ended job into `out`. Outputs are copied from staging memory. */
int completion_result(const struct job *j, struct capbuf *out, struct err *e);

#endif
