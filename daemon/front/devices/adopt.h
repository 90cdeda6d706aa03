/*
 * Adopts the workers of a former front: their buffers with the owners, and their jobs that run or
 * whose answers are not acknowledged. Thread: the loop's.
 */
#ifndef FRONT_DEVICES_ADOPT_H
#define FRONT_DEVICES_ADOPT_H

#include "daemon/front/model/front.h"
#include "daemon/front/workers/launcher_link.h"

/* The launcher reports the last worker of a device. Takes the descriptors. If the worker has ended,
 * the jobs that it had get their answers at once, unless they may run again. */
void adopt_worker(struct front *f, const struct launcher_inventory *inventory);
/* The worker reports its inventory. The owners are in the adoption record of the former front
 * (record.h). A buffer without an entry is freed, and so is the answer of a finished job.
 * ERR_PROTOCOL: the report contradicts the record. Takes the descriptor. */
int adopt_buffer(struct front *f, struct device *d, const struct msg_w_inventory_buffer *m, int fd,
                 struct err *e);
/* Any error: this front does not know the job, so nothing says what it uses if it runs. The worker
 * is to be ended, which answers the job. */
int adopt_job(struct front *f, struct device *d, const struct msg_w_inventory_job *m,
              struct err *e);
void adopt_end(struct front *f, struct device *d);
/* The worker ends before it has reported everything: what it did not report is lost with it. */
void adopt_lost(struct front *f, struct device *d, const char *why);
/* All workers have reported: all sessions are restored, and clients may connect. */
void adopt_over(struct front *f);

#endif
