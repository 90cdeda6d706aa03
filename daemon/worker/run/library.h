/* Operations that a vendor's library may run instead of the portable kernels. The first call for
 * a shape, or of a kind, may block while the library makes a plan or loads a kernel. Opening a
 * library does not block here: see module_cache.h. Thread: the loop's. */
#ifndef WORKER_RUN_LIBRARY_H
#define WORKER_RUN_LIBRARY_H

#include "daemon/worker/run/job.h"

/* Enqueues the whole operation. ERR_UNSUPPORTED: no library serves it; nothing was enqueued, and
 * `e` is unchanged. *ret_by: the library's name; static. */
int library_run(const struct job_scope *scope, struct job *j, const struct proto_wstep *s,
                const char **ret_by, struct err *e);

/* Frees what libraries have discarded. Nothing may be in flight. */
void library_tidy(struct device *dev);

#endif
