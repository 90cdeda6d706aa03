/*
 * What is kept of a device that is drained (draining.h): who asked for that and when, what its
 * reason says, and its entry in the hold file. Blocks on that file. Thread: the loop's.
 */
#ifndef FRONT_DEVICES_DRAINED_H
#define FRONT_DEVICES_DRAINED_H

#include "daemon/front/model/front.h"

/* Notes who asks for it, now. by: the name of a tenant. */
void drained_by(struct device *d, const char *by);
/* Sets the device's reason, which tables and explanations of jobs show: how far it is, who asked
 * for it, and when. */
void drained_say(struct device *d, const char *what);
/* Writes the device's entry into the hold file, or removes it. */
void drained_note(struct front *f, const struct device *d);
void drained_forget(struct front *f, const struct device *d);
/* Is the device drained? One that is not, for all that this front knows, is looked up in the hold
 * file. No worker of a drained device is to start. */
bool drained_recall(struct front *f, struct device *d);

#endif
