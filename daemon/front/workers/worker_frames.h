/* What a worker says, decoded and handed on. A worker is untrusted input: a frame that does not fit
 * its state is an error, and the worker is ended for it. Thread: the loop's. */
#ifndef FRONT_WORKERS_WORKER_FRAMES_H
#define FRONT_WORKERS_WORKER_FRAMES_H

#include "common/seqpacket.h"
#include "daemon/front/model/front.h"

int worker_frame(struct front *f, struct device *d, unsigned kind, struct bytes bytes,
                 struct frame_fds *fds, struct err *e);

#endif
