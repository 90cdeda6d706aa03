/*
 * Plays courses in processes of their own, and makes a failing course shorter: events and
 * parameters that the failure does not need are left out. Thread: one.
 */
#ifndef TEST_SIM_SHRINK_H
#define TEST_SIM_SHRINK_H

#include <stdio.h>

#include "tests/sim/course.h"
#include "tests/sim/verdict.h"

/* log NULL: none. */
void course_try(const struct course *p, FILE *log, struct verdict *ret_verdict);
/* *p breaks the rule of `v`: becomes a shorter course that breaks it as well. tries: the most. */
void course_shrink(struct course *p, struct verdict *v, unsigned tries);

#endif
