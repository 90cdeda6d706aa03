/*
 * What must hold at every step of a front that waits for something: for its start, for the content
 * of buffers, for workers that missed a frame. Thread: one.
 */
#ifndef TEST_SIM_WAITS_H
#define TEST_SIM_WAITS_H

#include <stdbool.h>

#include "proto/codec.h"

struct sim;
struct sim_worker;

void waits_follow(struct sim *s); /* a front begins */
void waits_check(struct sim *s);
void waits_check_all(struct sim *s); /* now and then */
/* Is the channel to the worker so full that this frame, which ends something in it, cannot be sent?
 */
bool waits_missed(struct sim *s, struct sim_worker *x, const struct schema *schema);

#endif
