/*
 * Plays courses in processes of their own, and makes a failing course shorter: events and
 * parameters that the failure does not need are left out. Thread: one.
 */
#ifndef TEST_SIM_SHRINK_H
#define TEST_SIM_SHRINK_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "tests/sim/course.h"

#define VERDICT_BYTES 2048u
#define WORLD_SECONDS 60u /* of processor time, for one world */

struct verdict {
    bool broken;
    char text[VERDICT_BYTES]; /* the rule, a colon, and what happened */
};

/* fork() for a process that plays worlds. Ends this process if there can be no other. */
pid_t world_fork(void);
/* Limits the time of the next world to WORLD_SECONDS; for the process that plays it. */
void world_limit(void);
/* log NULL: none. */
void course_try(const struct course *p, FILE *log, struct verdict *ret_verdict);
/* What the end of a process says, if its report says nothing. */
void verdict_of(int status, const char *report, struct verdict *ret_verdict);
/* *p breaks the rule of `v`: becomes a shorter course that breaks it as well. tries: the most. */
void course_shrink(struct course *p, struct verdict *v, unsigned tries);

#endif
