/*
 * What the programs that play worlds share: a world in a process of its own, what came of it, and
 * the search for a shorter course that breaks the same rule. Thread: one.
 */
#ifndef TEST_SIM_VERDICT_H
#define TEST_SIM_VERDICT_H

#include <stdbool.h>
#include <sys/types.h>

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
/* What the end of a process says, if its report says nothing. */
void verdict_of(int status, const char *report, struct verdict *ret_verdict);
/* Is the same rule broken, by whatever job or buffer? */
bool verdict_same(const struct verdict *a, const struct verdict *b);
/* Calls `play` in a process of its own, with the place of its report (VERDICT_BYTES, zeros).
 * Returns its number. */
pid_t verdict_play(void (*play)(void *data, char *report), void *data, struct verdict *ret_verdict);

/* The events of a course that becomes shorter. */
struct shrinking {
    void *data;
    unsigned (*count)(const void *data);
    bool (*more)(const void *data); /* may it try once more? */
    /* Leaves out `count` events from `at` on, if the same rule is still broken then. */
    bool (*without)(void *data, unsigned at, unsigned count);
};

/* Large pieces first, then smaller ones, then single events. */
void shrink_events(const struct shrinking *x);

#endif
