/*
 * Times for which the front stands still, alone or with the whole machine. Some of them are soon
 * followed by another one (the course's `stalls`). Thread: the simulation's.
 */
#ifndef TEST_SIM_STALL_H
#define TEST_SIM_STALL_H

#include <stdbool.h>
#include <stdint.h>

#define STALLS_MAX 64u /* that are remembered */

struct chance;
struct course_event;
struct sim;

struct sim_stall {
    uint64_t end_ns;
    uint64_t ns;        /* how long */
    uint64_t missed_ns; /* of that, since its timer should have fired: so it knows, or does not */
};

struct sim_stalls {
    struct sim_stall last[STALLS_MAX]; /* a ring */
    unsigned count;                    /* so far */
    uint64_t behind_ns;                /* it will, behind the timer's next work */
    uint64_t before_ns;                /* and then again, before the timer fires */
};

void stall_event(struct sim *s, const struct course_event *e, struct chance *r);
/* Around the work of the timer, if an event planned that. true: it did, and the loop reads first.
 */
bool stall_before_wake(struct sim *s);
void stall_behind_wake(struct sim *s);
/* How long it is since then, without the times for which the front stood still, of which it knows.
 */
uint64_t stall_passed_ns(const struct sim *s, uint64_t since_ns);
/* The last one; zeroed: none was. */
struct sim_stall stall_last(const struct sim *s);

#endif
