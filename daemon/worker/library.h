/* Operations that one of the vendor's libraries may run instead of the portable kernels. Thread:
 * the loop's. Blocks when a library is first needed, while it is opened. */
#ifndef WORKER_LIBRARY_H
#define WORKER_LIBRARY_H

#include "daemon/worker/job.h"

/* Bytes of device memory that the step would need; 0: none, or no library serves it. */
uint64_t library_workspace(const struct device *dev, unsigned stream, const struct proto_wstep *s);
/* Enqueues the whole operation. ERR_UNSUPPORTED: no library serves it, nothing was enqueued,
 * `e` is untouched. ret_by: what serves it; static. */
int library_run(const struct job_scope *scope, struct job *j, const struct proto_wstep *s,
                const char **ret_by, struct err *e);

#endif
