/*
 * The settings that were accepted last: copies of the files, so that a front that starts with bad
 * ones has something to serve with. systemd ends the old front before the new one reads anything;
 * without them the workers, and what they hold, would end with it.
 *
 * Thread: any, one at a time. Blocks on files.
 */
#ifndef FRONT_SETTINGS_ACCEPTED_H
#define FRONT_SETTINGS_ACCEPTED_H

#include <stdbool.h>

#include "daemon/front/settings/config.h"

/* The folder of the copies, as `config.root` has it; false: the service manager gives none
 * (STATE_DIRECTORY), or nothing is kept there. */
bool accepted_root(char ret_root[CONFIG_PATH]);
/* Copies what `config` was read from. A failure leaves the copies as they were; without a folder of
 * the service manager's nothing is done. ERR_IO, ERR_LIMIT. */
int accepted_keep(const struct config *config, struct err *e);

#endif
