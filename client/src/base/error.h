/*
 * Errors in the form of the public header. Thread: any, no lock needed. Each thread has its own
 * last error.
 */
#ifndef CLIENT_BASE_ERROR_H
#define CLIENT_BASE_ERROR_H

#include "client/include/gpud/gpud.h"
#include "common/err.h"

/* Makes `rc` and `e` this thread's last error if rc is a failure. Returns rc. */
int error_report(int rc, const struct err *e);
/* Makes `kept` this thread's last error again. */
void error_restore(const gpud_error *kept);
/* Fills the public struct but for its `size`. */
void error_fill(gpud_error *ret_error, const struct err *e);

#endif
