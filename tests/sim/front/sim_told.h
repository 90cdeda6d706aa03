/*
 * Bursts of jobs at the end of a world, when all is done and clients have looked at their buffers
 * for the last time: what the front says of their begins has to happen (rules/sim_told.h).
 */
#ifndef TEST_SIM_TOLD_BURSTS_H
#define TEST_SIM_TOLD_BURSTS_H

#include <stdbool.h>

struct sim;

/* Plays the next burst. false: there is none, and the world may end. */
bool told_goes_on(struct sim *s);
/* A world begins. */
void told_reset(void);

#endif
