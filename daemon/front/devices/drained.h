/*
 * What the front keeps of a drained device (draining.h): the tenant that asked for the drain and
 * the time, the device's reason, and its entry in the hold file. Blocks on that file. Thread: the
 * loop's.
 */
#ifndef FRONT_DEVICES_DRAINED_H
#define FRONT_DEVICES_DRAINED_H

#include "daemon/front/devices/hold_file.h"
#include "daemon/front/model/front.h"

/* Notes the tenant of this name and the present time as the origin of the drain. */
void drained_by(struct device *d, const char *by);
/* Sets the device's reason, which tables and explanations of jobs show: its progress, and the
 * origin of the drain. */
void drained_say(struct device *d, const char *what);
/* Writes the device's entry into the hold file, or removes it. */
void drained_note(struct front *f, const struct device *d);
void drained_forget(struct front *f, const struct device *d);
/* The device at this place of those that the former front knew while a device was drained. NULL:
 * behind their end, or the settings choose devices. */
const struct hold_known *drained_known(struct front *f, unsigned at);
/* Is the device drained? If this front does not know of a drain, the hold file decides. No worker
 * of a drained device is to start. */
bool drained_recall(struct front *f, struct device *d);

#endif
