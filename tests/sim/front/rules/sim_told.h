/*
 * What the front tells of the begin of jobs is what happens: in bursts of jobs of known times,
 * while nothing else comes (sim_told.c). Each look of the simulation asks when each job of the
 * burst will begin. Thread: one.
 */
#ifndef TEST_SIM_TOLD_H
#define TEST_SIM_TOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"

struct device;
struct job;
struct sim;
struct sim_job;
struct sim_worker;

/* Bursts are played now: moves take known times, and jobs the time that they have. */
bool told_on(const struct sim *s);
void told_begin(bool on);
/* How many times longer jobs take on a device than on the first one. */
void told_slow(unsigned device, unsigned times);
unsigned told_times(unsigned device);
uint64_t told_run_ns(const struct sim_worker *x, const struct sim_job *j);
/* Another burst: no job is followed any more. */
void told_anew(void);
#define TOLD_ANY (1000 * NS_PER_S) /* no rule */
/* The job is of the burst. It may begin so much later or earlier than the front says, and by a part
 * of the wait. */
void told_follow(struct sim *s, struct sim_job *j, uint64_t late_ns, uint64_t early_ns);
/* The job is of the burst, and no rule holds for its begin. */
void told_beside(struct sim *s, struct sim_job *j);
/* The job waits for a job of unknown time. */
void told_unknown(struct sim *s, struct sim_job *j);
/* The job takes longer than usual_ns, which such jobs take. */
void told_usual(struct sim *s, struct sim_job *j, uint64_t usual_ns);
/* The new job is bound to another device than all its buffers, which are on `home`. */
void told_stray(struct sim *s, const struct job *j, const struct device *home);
/* The front refuses it for its deadline. */
void told_refused(struct sim *s, const struct sim_job *j, const char *text);
void told_look(struct sim *s); /* at each step */
/* A worker begins the job. */
void told_begins(struct sim *s, const struct sim_job *j);

#endif
