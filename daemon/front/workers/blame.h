/* Describes what a worker was doing when it ended, for the log and for tables. Pure. Thread: the
 * loop's. */
#ifndef FRONT_WORKERS_BLAME_H
#define FRONT_WORKERS_BLAME_H

#include <stddef.h>

#include "daemon/front/model/device.h"
#include "daemon/front/model/job.h"

#define BLAME_MAX sizeof(((struct device *)0)->fault_doing)

/* The kernels of a job, "" if it has none. step: only that step of the user's program, -1: all. */
void blame_kernels(const struct job *j, int step, char *out, size_t size);

/* The name of the argument in the launched kernel; workers know only its number. Empty: not known.
 * The bytes belong to the job's module. */
struct bytes blame_argument(const struct job *j, int step, int arg);

/* "while job 7 "label" (kernel axpy; session 3 "name", tenant uid:1000) ran". Names the culprit if
 * it is known, else the jobs that ran, else the jobs that the worker had. */
void blame_text(const struct device *d, char out[BLAME_MAX]);

#endif
