/*
 * What becomes of jobs in flight: done or failed by the worker's word, or, when the worker ended,
 * run again, convicted or given up (docs/faults.md). Thread: the loop's.
 */
#ifndef FRONT_SCHED_COMPLETION_H
#define FRONT_SCHED_COMPLETION_H

#include "daemon/front/model/front.h"

void completion_done(struct front *f, struct device *d, const struct msg_w_done *m);
/* The device's worker is gone. external: not through a fault of what it ran. */
void completion_lost(struct front *f, struct device *d, bool external, const char *why);
/* Encodes the RESULT record of an ended job into `out`. Outputs are copied from staging memory. */
int completion_result(const struct job *j, struct capbuf *out, struct err *e);

#endif
