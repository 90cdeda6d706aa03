/* Decodes frames of a worker and hands them to other rooms through hooks. A frame that does not fit
 * the worker's state (frame_check.h) is an error, for which the worker is ended.
 * Thread: the loop's. */
#ifndef FRONT_WORKERS_WORKER_FRAMES_H
#define FRONT_WORKERS_WORKER_FRAMES_H

#include "common/seqpacket.h"
#include "daemon/front/model/front.h"

int worker_frame(struct front *f, struct device *d, unsigned kind, struct bytes bytes,
                 struct frame_fds *fds, struct err *e);

#endif
