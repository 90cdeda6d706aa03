/* An operator drains devices and resumes them. Thread: the simulation's. */
#ifndef TEST_SIM_DRAIN_H
#define TEST_SIM_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

struct chance;
struct course_event;
struct device;
struct sim;

void drain_event(struct sim *s, const struct course_event *e, struct chance *r);
void drain_now(struct sim *s, struct device *d);
bool drain_any(const struct sim *s);    /* devices that are drained */
void drain_settle(struct sim *s);       /* resumes all of them */
bool drain_pauses(const struct sim *s); /* the monitor may be ended for one of them */
void drain_check(struct sim *s);        /* rules, at every step */
void drain_check_job(struct sim *s, const struct device *d, uint64_t job);
/* The hardware with this number gets a worker. */
void drain_check_start(struct sim *s, unsigned number);

#endif
