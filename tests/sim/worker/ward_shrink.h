/*
 * Plays courses around the worker in processes of their own, and makes a failing course shorter:
 * events and parameters that the failure does not need are left out. Thread: one.
 */
#ifndef TEST_SIM_WARD_SHRINK_H
#define TEST_SIM_WARD_SHRINK_H

#include "tests/sim/verdict.h"
#include "tests/sim/worker/ward.h"

/* log NULL: none. */
void ward_try(const struct ward_course *p, FILE *log, struct verdict *ret_verdict);
/* *p breaks the rule of `v`: becomes a shorter course that breaks it as well. tries: the most. */
void ward_shrink(struct ward_course *p, struct verdict *v, unsigned tries);

#endif
