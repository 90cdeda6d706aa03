/* Reading the settings again while the daemon runs. Thread: the loop's; blocks on files. */
#ifndef FRONT_RELOAD_H
#define FRONT_RELOAD_H

#include "daemon/front/front.h"

/* What may change is changed; what needs a restart is logged. On failure, which names file and
 * line, all settings are as before. */
int reload_settings(struct front *f, struct err *e);

#endif
