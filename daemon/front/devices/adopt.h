/*
 * Takes over what a worker from before this front holds: buffers with their owners, jobs that run
 * or whose answers were not taken. Thread: the loop's.
 */
#ifndef FRONT_DEVICES_ADOPT_H
#define FRONT_DEVICES_ADOPT_H

#include "daemon/front/model/front.h"
#include "daemon/front/workers/launcher_link.h"

/* The launcher's word: a worker runs. The descriptors are taken. */
void adopt_worker(struct front *f, const struct launcher_held *held);
/* The worker reports what it holds. The owners are in the record that the front before left with
 * the launcher (record.h). What is not in the record goes. ERR_PROTOCOL: a lie. The descriptor is
 * taken. */
int adopt_buffer(struct front *f, struct device *d, const struct msg_w_held_buffer *m, int fd,
                 struct err *e);
void adopt_job(struct front *f, struct device *d, const struct msg_w_held_job *m);
void adopt_end(struct front *f, struct device *d);
/* All workers have reported: what sessions have is known, and clients may connect. */
void adopt_over(struct front *f);

#endif
