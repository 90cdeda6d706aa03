/*
 * Jobs of known times on buffers of one device, which is busy while others are not, so that the
 * front moves these buffers (rules/sim_sooner.c). In worlds of deadlines. Thread: one.
 */
#ifndef TEST_SIM_STRAY_H
#define TEST_SIM_STRAY_H

#include <stdint.h>

struct capbuf;
struct chance;
struct sim;
struct sim_client;
struct sim_job;
struct sim_step;

void stray_event(struct sim *s, struct sim_client *c, struct chance *r);
/* sim_ask.c: kernel: of a launch. */
void ask_encode_step(struct sim *s, const struct sim_job *j, struct sim_step *t, uint64_t kernel,
                     struct capbuf *steps);
#endif
