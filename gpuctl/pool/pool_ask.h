/* What the commands of `gpuctl pool` share. */
#ifndef GPUCTL_POOL_POOL_ASK_H
#define GPUCTL_POOL_POOL_ASK_H

#include "gpuctl/ctl/ctl.h"
#include "gpuctl/pool/shot.h"

/* Ids of options; each command's own ones follow. */
enum pool_ask_id { POOL_DEVICE = 1, POOL_TIMEOUT, POOL_OWN };

/* An option of struct shot_ask; 0 if it is none. */
int pool_ask_option(int id, const char *value, struct shot_ask *ask, struct ctl_err *e);
/* Says which devices did not tell. 0 if one of them did, or there was none to ask. */
int pool_notes_tell(const struct shot *shot, struct ctl_err *e);

#endif
