/*
 * What a worker may say. A worker runs code of users, so each of its frames is checked against what
 * this front gave that worker before anything believes it. A frame that no honest worker sends is
 * an ERR_PROTOCOL, which ends the worker; a frame that came too late is no lie and passes: the
 * stages behind ignore it. Thread: the loop's.
 */
#ifndef FRONT_WORKERS_WORDS_H
#define FRONT_WORKERS_WORDS_H

#include "daemon/front/model/front.h"

/* W_READY: from a worker that opens its device, once, or that is asked what it holds. */
int words_ready(const struct device *d, struct err *e);
/* W_ABSENT: the same, and never behind W_READY. */
int words_absent(const struct device *d, const struct msg_w_absent *m, struct err *e);
/* W_STARTED, W_PAUSED, W_WAITING, W_LATE: `job` is another device's. */
int words_job(const struct front *f, const struct device *d, uint64_t job, struct err *e);
int words_done(const struct front *f, const struct device *d, const struct msg_w_done *m,
               struct err *e);
int words_buffer(const struct front *f, const struct device *d, const struct msg_w_buffer *m,
                 struct err *e);
int words_exported(const struct front *f, const struct device *d, const struct msg_w_exported *m,
                   struct err *e);
int words_module(const struct front *f, const struct device *d, const struct msg_w_module *m,
                 struct err *e);
int words_arena(const struct msg_w_arena *m, struct err *e);
/* A result alone, of W_PICTURE, W_RINGS and W_TENANT_REFUSED. */
int words_code(int64_t code, int64_t vendor, struct err *e);

#endif
