/*
 * Dispatches ready jobs to devices in the order of their queues, each device up to its window.
 * Thread: the loop's; does not block (inputs are copied into staging memory).
 */
#ifndef FRONT_SCHED_DISPATCH_H
#define FRONT_SCHED_DISPATCH_H

#include "daemon/front/model/front.h"

void dispatch_all(struct front *f);

#endif
