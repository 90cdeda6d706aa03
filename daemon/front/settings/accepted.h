/*
 * Copies of the settings that were accepted last. A front that starts with bad settings serves with
 * the copies: systemd has ended the former front by then, and without a front the workers would end
 * with their buffers. Thread: any, one at a time. Blocks on files.
 */
#ifndef FRONT_SETTINGS_ACCEPTED_H
#define FRONT_SETTINGS_ACCEPTED_H

#include <stdbool.h>

#include "daemon/front/settings/config.h"

/* The state folder of the service manager (STATE_DIRECTORY). false: it names none, or several, or
 * the name is too long. */
bool accepted_state(char ret_dir[CONFIG_PATH]);
/* The folder of the copies, for `config.root`. false: there is no state folder, or it has no
 * copies. */
bool accepted_root(char ret_root[CONFIG_PATH]);
/* Copies the files from which `config` was read. If copying fails, the former copies remain; if
 * replacing them fails, none may be left. Without a folder of the service manager it does nothing.
 * ERR_IO, ERR_LIMIT. */
int accepted_keep(const struct config *config, struct err *e);

#endif
