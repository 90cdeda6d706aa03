/* Workers whose driver is lost. Thread: one. */
#ifndef TEST_SIM_SIM_LOST_H
#define TEST_SIM_SIM_LOST_H

#include <stdbool.h>

struct sim;
struct sim_worker_job;

/* The driver is lost while the job of a client runs: its worker says so, and ends. */
bool lost_with(const struct sim *s, const struct sim_worker_job *j);

#endif
