/*
 * Jobs whose buffers go to another device since that is sooner: what may not go, and what may not
 * be worth it. Thread: one.
 */
#ifndef TEST_SIM_SOONER_H
#define TEST_SIM_SOONER_H

#include <stdbool.h>

#include "common/clock.h"

/* How long a worker takes until the host has a buffer that moves, or until it has it from there, in
 * such a world: so that these times are known. */
#define STRAY_LEAVES_NS (6 * NS_PER_MS)
#define STRAY_COMES_NS  (3 * NS_PER_MS)

struct device;
struct job;
struct sim;

bool stray_is(const struct sim *s); /* a world of deadlines and several devices */
/* A new job is bound to a device, and its buffers are on another one. Its client named none. */
void sooner_check(struct sim *s, const struct job *j, struct device *home);
/* A new job, wherever it is bound to. */
void sooner_check_used(struct sim *s, const struct job *j);

/* A new job: if it is bound elsewhere than all its buffers, it is to come back if these cannot go.
 */
void sooner_follow(const struct sim *s, const struct job *j);
void sooner_refused(const struct sim *s, uint64_t handle); /* the buffer finds no memory */
void sooner_look(struct sim *s);                           /* at each step */

#endif
