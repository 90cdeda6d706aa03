/*
 * The ends of jobs in flight. A worker reports them as done or failed. When the worker itself
 * ended, each of its jobs runs again, is convicted, or is given up (docs/faults.md). Thread: the
 * loop's.
 */
#ifndef FRONT_SCHED_COMPLETION_H
#define FRONT_SCHED_COMPLETION_H

#include "daemon/front/model/front.h"

/* The worker reports a job's end. The job is the device's, ended or unknown (frame_check_done). */
void completion_done(struct front *f, struct device *d, const struct msg_w_done *m);
/* The device's worker ended. external: not by a fault of its jobs. */
void completion_lost(struct front *f, struct device *d, bool external, const char *why);
/* An adopted job whose worker ended before this front could ask it. */
void completion_departed(struct front *f, struct job *j, const char *why);
/* Encodes the RESULT record of an ended job into `out`. Outputs are copied from staging memory; if
 * that was reused, the record says ERR_LIMIT instead. */
int completion_result(const struct job *j, struct capbuf *out, struct err *e);

#endif
