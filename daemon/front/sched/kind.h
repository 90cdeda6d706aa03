/*
 * The kind of a job, by which times of jobs are learnt (model/forecast.h): the sequence of its
 * steps, each with its operation and kernel, and with its bytes and work items in steps of a
 * quarter of an octave. Values that a kernel gets do not count. The same in every front. Pure.
 */
#ifndef FRONT_SCHED_KIND_H
#define FRONT_SCHED_KIND_H

#include "daemon/front/model/work.h"

uint64_t kind_of(const struct work *w); /* 0: it has no steps. O(steps) */

#endif
