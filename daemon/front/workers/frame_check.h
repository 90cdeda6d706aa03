/*
 * Checks the frames of a worker. A worker runs code of users, so each frame is compared with what
 * this front gave that worker before any stage uses it. ERR_PROTOCOL, which ends the worker, is for
 * frames that a correct worker never sends. A frame that is merely late passes; later stages ignore
 * it. Thread: the loop's.
 */
#ifndef FRONT_WORKERS_FRAME_CHECK_H
#define FRONT_WORKERS_FRAME_CHECK_H

#include "daemon/front/model/front.h"

/* W_READY: a worker sends it once while it opens its device, or as the first frame of its
 * inventory. */
int frame_check_ready(const struct device *d, struct err *e);
/* W_ABSENT: a worker sends it at the same times, and never after W_READY. */
int frame_check_absent(const struct device *d, const struct msg_w_absent *m, struct err *e);
/* W_STARTED, W_PAUSED, W_WAITING, W_LATE: refuses a job of another device. */
int frame_check_job(const struct front *f, const struct device *d, uint64_t job, struct err *e);
int frame_check_done(const struct front *f, const struct device *d, const struct msg_w_done *m,
                     struct err *e);
int frame_check_buffer(const struct front *f, const struct device *d, const struct msg_w_buffer *m,
                       struct err *e);
int frame_check_exported(const struct front *f, const struct device *d,
                         const struct msg_w_exported *m, struct err *e);
int frame_check_module(const struct front *f, const struct device *d, const struct msg_w_module *m,
                       struct err *e);
int frame_check_arena(const struct msg_w_arena *m, struct err *e);
/* The result codes of any frame; W_SNAPSHOT, W_RINGS and W_TENANT_REFUSED have nothing else to
 * check. */
int frame_check_code(int64_t code, int64_t vendor, struct err *e);

#endif
