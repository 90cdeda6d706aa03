/*
 * Plays courses in processes of their own, and makes a failing course shorter: events and
 * parameters that the failure does not need are left out. Thread: one.
 */
#ifndef TEST_SIM_SHRINK_H
#define TEST_SIM_SHRINK_H

#include <stdbool.h>
#include <stdio.h>

#include "tests/sim/course.h"

#define VERDICT_BYTES 2048u

struct verdict {
    bool broken;
    char text[VERDICT_BYTES]; /* the rule, a colon, and what happened */
};

/* Limits the time of one world; for the process that plays it. seconds of processor time. */
void world_limit(unsigned seconds);
/* log NULL: none. */
void course_try(const struct course *p, FILE *log, struct verdict *ret_verdict);
/* What the end of a process says, if its report says nothing. */
void verdict_of(int status, const char *report, struct verdict *ret_verdict);
/* *p breaks the rule of `v`: becomes a shorter course that breaks it as well. tries: the most. */
void course_shrink(struct course *p, struct verdict *v, unsigned tries);

#endif
