/*
 * A time limit for the end of the process, in case a library or a thread hangs. It is used only
 * when jobs, workers and the launcher no longer need the front. Thread: the loop's.
 */
#ifndef FRONT_ENDING_H
#define FRONT_ENDING_H

#include "daemon/front/model/front.h"

/* Ends the process after `seconds`, with the present exit code of the front, and a line on stderr
 * that `what` (a static text) did not end. The latest call counts. */
void ending_within(const struct front *f, unsigned seconds, const char *what);

#endif
