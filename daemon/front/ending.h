/*
 * The last resort at the end of the process: what does not end is left behind. All that matters has
 * ended by then, or others end it: jobs, workers, the launcher. Thread: the loop's.
 */
#ifndef FRONT_ENDING_H
#define FRONT_ENDING_H

#include "daemon/front/model/front.h"

/* The process ends in so many seconds with the front's exit code as it is now, and says that `what`
 * (a text that stays) did not end. Said again: the last one counts. */
void ending_within(const struct front *f, unsigned seconds, const char *what);

#endif
