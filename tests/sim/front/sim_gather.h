/*
 * Jobs of several devices that read one buffer, jobs that are cancelled while it moves for them,
 * and jobs that want one whose worker is about to end as idle (sim_moves.h). Thread: one.
 */
#ifndef TEST_SIM_GATHER_H
#define TEST_SIM_GATHER_H

struct chance;
struct sim;
struct sim_client;

void gather_begin(struct sim *s); /* of the world */
void ask_gather(struct sim *s, struct sim_client *c, struct chance *r);

#endif
