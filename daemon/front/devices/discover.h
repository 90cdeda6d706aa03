/*
 * Which devices there are, and when one is ready. The front links no GPU library, so it learns of
 * devices from the workers it starts for them: number 0 of a back end first, the next one when that
 * has opened. Thread: the loop's.
 */
#ifndef FRONT_DEVICES_DISCOVER_H
#define FRONT_DEVICES_DISCOVER_H

#include "daemon/front/model/front.h"
#include "proto/health.h"

void discover_start(struct front *f); /* once the launcher told which workers run already */
struct device *discover_device(struct front *f, const char *backend, unsigned number);
/* A worker opened its device: restores what was sealed, runs the first job, then it serves. */
void discover_ready(struct front *f, struct device *d);
/* It is absent or stuck: jobs and buffers that wait for it end with its reason. */
void discover_given_up(struct front *f, struct device *d);
/* Its worker found no device: it is looked for again after a pause that grows, with "auto" from the
 * first back end on, so that a driver that is installed later is found. */
void discover_absent(struct front *f, struct device *d, const struct err *e);
void discover_watch(struct front *f, uint64_t now); /* looks for those whose pause is over */
void discover_again(struct front *f);               /* looks for all that are absent now */
/* Is one being opened that was neither absent nor failing before? */
bool discover_opening(const struct front *f);
void discover_probed(struct front *f, struct device *d, const struct job *j);
/* Opens the others of its back end: those that are there, and those that are asked for by number.
 */
void discover_siblings(struct front *f, struct device *d);
/* Where a GPU is in MIG mode and the configuration chooses no devices: all instances, and the GPUs
 * that are not divided. A process sees some of them only, the management library all. */
void discover_listed(struct front *f, const struct health_report *report);
unsigned discover_serving(const struct front *f);

#endif
