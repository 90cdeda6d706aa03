/* Operations that one of the vendor's libraries may run instead of the portable kernels. Thread:
 * the loop's. The first call for a shape or of a kind may block, where a library makes a plan or
 * loads a kernel; to open it does not: module_cache.h. */
#ifndef WORKER_RUN_LIBRARY_H
#define WORKER_RUN_LIBRARY_H

#include "daemon/worker/run/job.h"

/* Enqueues the whole operation. ERR_UNSUPPORTED: no library serves it, nothing was enqueued,
 * `e` is untouched. ret_by: what serves it; static. */
int library_run(const struct job_scope *scope, struct job *j, const struct proto_wstep *s,
                const char **ret_by, struct err *e);

/* Nothing is in flight: what libraries gave up ends. */
void library_tidy(struct device *dev);

#endif
