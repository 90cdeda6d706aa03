/*
 * What the programs that play worlds do with their options (options.h): files of courses, or seeds
 * in several processes, each of which plays many worlds. Thread: one.
 */
#ifndef TEST_SIM_LANES_H
#define TEST_SIM_LANES_H

#include <stdint.h>
#include <stdio.h>

#include "tests/sim/options.h"
#include "tests/sim/verdict.h"

struct simulation {
    const char *folder; /* kept courses */
    uint64_t seeds;     /* 1 to this are the usual ones */
    /* Plays the world of a seed in this process, which ends if a rule is broken. log: what happens
     * goes there; NULL: nowhere. report: VERDICT_BYTES for the rule. Returns the time in the world,
     * ns. */
    uint64_t (*play)(uint64_t seed, FILE *log, char *report);
    /* Plays the course of a file in a process of its own. false: it is no course. */
    bool (*play_file)(FILE *in, FILE *log, struct verdict *ret_verdict);
    /* Writes a shorter course than the seed's, which breaks the rule of *v as well. Returns false
     * and writes nothing if the seed breaks none by itself. */
    bool (*shorten)(uint64_t seed, struct verdict *v, FILE *out, unsigned *ret_before,
                    unsigned *ret_after);
    void (*clear)(int pid); /* removes what a process has left; NULL: none leaves anything */
};

/* Prints which rules were broken, and how many. Returns the exit status of the program. */
int lanes_main(const struct simulation *x, const struct options *o);

#endif
