/*
 * Takes over what a worker from before this front holds: buffers with their owners, jobs that run
 * or whose answers were not taken. Thread: the loop's.
 */
#ifndef FRONT_ADOPT_H
#define FRONT_ADOPT_H

#include "daemon/front/front.h"

/* The launcher's word: a worker runs. The descriptors are taken. */
void adopt_worker(struct front *f, uint64_t id, pid_t pid, struct bytes meta, int channel,
                  int input, int output);
void adopt_buffer(struct front *f, struct device *d, const struct msg_w_held_buffer *m, int fd);
void adopt_job(struct front *f, struct device *d, const struct msg_w_held_job *m);
void adopt_end(struct front *f, struct device *d);

#endif
