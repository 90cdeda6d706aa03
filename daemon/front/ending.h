/*
 * A time limit for the end of the process. Jobs, workers and the launcher have ended by then, or
 * end without the front. Thread: the loop's.
 */
#ifndef FRONT_ENDING_H
#define FRONT_ENDING_H

#include "daemon/front/model/front.h"

/* Ends the process after so many seconds, with the front's present exit code, and logs that `what`
 * (a static text) did not end. The latest call counts. */
void ending_within(const struct front *f, unsigned seconds, const char *what);

#endif
