/*
 * The energy of devices, divided among tenants. Each report of the driver about a device ends an
 * interval. A tenant gets the part of the interval's energy in which it had the device: its device
 * time (sched/shares.h), of jobs in flight as well, divided by the length of the interval. The
 * rest, while the device was idle, is in no account. So an account's energy is a share of what was
 * measured, not a measurement of the tenant's jobs. Thread: the loop's.
 */
#ifndef FRONT_DEVICES_ENERGY_H
#define FRONT_DEVICES_ENERGY_H

#include <stdint.h>

#include "daemon/front/model/front.h"
#include "proto/health.h"

/* A report about the device, which is no domain, that was taken at that time; one that was seen
 * before changes nothing. A device that counts no energy is taken to have had its present power
 * during the interval. Instances of a divided GPU have no energy of their own. */
void energy_report(struct front *f, struct device *d, const struct health_device *health,
                   uint64_t taken_ns);

#endif
