/*
 * Finds devices and makes them ready. The front links no GPU library, so it learns of devices from
 * the workers that it starts for them: number 0 of a back end first, and the others once that
 * device is open. Thread: the loop's.
 */
#ifndef FRONT_DEVICES_DISCOVER_H
#define FRONT_DEVICES_DISCOVER_H

#include "daemon/front/model/front.h"
#include "proto/health.h"

void discover_start(struct front *f); /* once the launcher has listed the workers that run */
struct device *discover_device(struct front *f, const char *backend, unsigned number);
/* A worker opened its device: restores sealed buffers and runs the first job; then it serves. */
void discover_ready(struct front *f, struct device *d);
/* The device is absent or stuck: jobs and buffers that wait for it end with its reason. */
void discover_given_up(struct front *f, struct device *d);
/* The worker found no device. Retries after a pause that grows; with "auto" it begins with the
 * first back end again, so that a driver that is installed later is found. */
void discover_absent(struct front *f, struct device *d, const struct err *e);
void discover_watch(struct front *f, uint64_t now); /* retries devices whose pause is over */
void discover_again(struct front *f);               /* retries all absent devices at once */
/* Is a device being opened that was neither absent nor failing before? */
bool discover_opening(const struct front *f);
/* The first job of the device ended. */
void discover_probed(struct front *f, struct device *d, const struct job *j);
/* Opens the other devices of its back end: those that exist, or those that the settings name. */
void discover_siblings(struct front *f, struct device *d);
/* Opens all MIG instances and undivided GPUs of the report, unless the settings name devices. A
 * process sees only some of them; the management library lists all. */
void discover_listed(struct front *f, const struct health_report *report);
unsigned discover_serving(const struct front *f); /* how many devices serve */

#endif
