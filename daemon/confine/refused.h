/*
 * Says in the log which system calls the filter refused, each once, and makes them return EPERM.
 * Code of users may replace the handler; it then sees its own calls refused without a line.
 */
#ifndef CONFINE_REFUSED_H
#define CONFINE_REFUSED_H

#include "common/err.h"

/* Sets the handler of SIGSYS of this process. ERR_INTERNAL. */
int refused_watch(struct err *e);

#endif
