/* What the commands of `gpuctl pool` share. */
#ifndef GPUCTL_POOL_POOL_REQUEST_H
#define GPUCTL_POOL_POOL_REQUEST_H

#include "gpuctl/ctl/ctl.h"
#include "gpuctl/pool/snapshot.h"

/* Ids of the options that both commands have; a command's own options start at POOL_OWN. */
enum pool_request_id { POOL_DEVICE = 1, POOL_TIMEOUT, POOL_OWN };

/* Takes an option into *request; other ids do nothing. */
int pool_request_option(int id, const char *value, struct snapshot_request *request,
                        struct ctl_err *e);
/* Prints a message for each of several devices that is not in the snapshot. DEVICE_LOST if none of
 * one or more devices is in it. */
int pool_notes_show(const struct snapshot *snapshot, struct ctl_err *e);

#endif
