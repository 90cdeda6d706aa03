/*
 * Plays courses around the worker in processes of their own, and makes a failing course shorter:
 * events and parameters that the failure does not need are left out. Thread: one.
 */
#ifndef TEST_SIM_WARD_SHRINK_H
#define TEST_SIM_WARD_SHRINK_H

#include "tests/sim/worker/ward.h"

struct ward_verdict {
    bool broken;
    char text[WARD_FAIL_BYTES]; /* the rule, a colon, and what happened */
};

/* fork() for a process that plays worlds. Ends this process if there can be no other. */
pid_t ward_fork(void);
/* Limits the processor time of the next world; for the process that plays it. */
void ward_time_limit(void);
/* log NULL: none. */
void ward_try(const struct ward_course *p, FILE *log, struct ward_verdict *ret_verdict);
/* What the end of a process says, if its report says nothing. */
void ward_verdict_of(int status, const char *report, struct ward_verdict *ret_verdict);
/* *p breaks the rule of `v`: becomes a shorter course that breaks it as well. tries: the most. */
void ward_shrink(struct ward_course *p, struct ward_verdict *v, unsigned tries);

#endif
