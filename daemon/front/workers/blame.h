/* What a worker was doing, in words for whoever is woken by its end. Pure. Thread: the loop's. */
#ifndef FRONT_WORKERS_BLAME_H
#define FRONT_WORKERS_BLAME_H

#include <stddef.h>

#include "daemon/front/model/device.h"
#include "daemon/front/model/job.h"

#define BLAME_MAX sizeof(((struct device *)0)->fault_doing)

/* The kernels of a job, "" if it has none; `step` (of the user's program) narrows it, -1: all. */
void blame_kernels(const struct job *j, int step, char *out, size_t size);

/* What the launched kernel calls that argument, empty where it is not known; a worker knows
 * arguments by number only. Lies in the job's module. */
struct bytes blame_argument(const struct job *j, int step, int arg);

/* "while job 7 "label" (kernel axpy; session 3 "name", tenant uid:1000) ran": the culprit if one is
 * known, else what was seen to run, else what it had been given. */
void blame_text(const struct device *d, char out[BLAME_MAX]);

#endif
