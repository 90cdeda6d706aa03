/*
 * Clients in processes of their own that submit jobs, several at a time, and check each answer:
 * that it comes, once, and is right. Thread: one.
 */
#ifndef SYSTEM_LOAD_H
#define SYSTEM_LOAD_H

#include "tests/system/harness/harness.h"

#define LOAD_MAX 8u

struct load {
    unsigned count;
    pid_t pid[LOAD_MAX];
    int stop; /* closed to end them */
    int done; /* shared counters of answers */
};

void load_start(struct load *load, const char *url, unsigned processes);
/* Asks the processes for their end; every one must have had only right answers. How many. */
uint64_t load_stop(struct load *load);

/* Duration of a storm: `brief`, or GPUD_SYSTEM_SECONDS, with which the counters are printed, too.
 */
unsigned storm_seconds(unsigned brief);
void storm_told(const char *what, int backend, unsigned kills, uint64_t jobs, uint64_t replayed);

#endif
