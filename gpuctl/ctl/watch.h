/* Repeats a command that shows something (`-w SECONDS`). */
#ifndef GPUCTL_CTL_WATCH_H
#define GPUCTL_CTL_WATCH_H

#include "gpuctl/ctl/ctl.h"

/* Runs ctl->command, which has run once with the result rc, again every ctl->watch_ns, until the
 * user interrupts or the output has no reader. Then it returns 0. A daemon that goes away is
 * reported and waited for; another error, and that of the first run, is returned. options: where
 * those of the command begin. Blocks. */
int watch_repeat(struct ctl *ctl, const struct options *options, int rc, struct ctl_err *e);

#endif
