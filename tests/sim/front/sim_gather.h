/*
 * Jobs of several devices that read one buffer, and jobs that are cancelled while it moves for them
 * (sim_moves.h). Thread: one.
 */
#ifndef TEST_SIM_GATHER_H
#define TEST_SIM_GATHER_H

struct chance;
struct sim;
struct sim_client;

void ask_gather(struct sim *s, struct sim_client *c, struct chance *r);

#endif
