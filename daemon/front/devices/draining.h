/*
 * An operator releases one device, for a reset, a change of MIG, or another driver, while the
 * others serve: `gpuctl drain --device N`. Its states are those of enum drain_state
 * (model/device.h).
 *
 * From then on no request gets the device that names it (ERR_DRAINING), and none that names no
 * device. Jobs in flight end. Jobs that are bound to it wait for the operator, or run first. Then
 * all its workers end so that nothing is lost (workers/rest.h), the shared one and those of its
 * domains, those that the launcher has prepared, and the monitor, because the management library
 * has every GPU open. The device is released when they have ended, and no process that compiles for
 * it runs.
 *
 * If something cannot go to the host, nothing moves, and the device's reason says what it is. The
 * drain goes on by itself when that is gone. The hold file has drained devices for the next front,
 * which does not open them. Thread: the loop's. Nothing blocks but the file.
 */
#ifndef FRONT_DEVICES_DRAINING_H
#define FRONT_DEVICES_DRAINING_H

#include "daemon/front/model/front.h"

/* Drains the device with that number among those that clients name. finish: jobs that are bound to
 * it run first. by: the name of the tenant that asks. An earlier drain goes on: only
 * `finish` changes. ERR_NOT_FOUND: there is no such device. */
int draining_begin(struct front *f, uint64_t number, bool finish, const char *by, struct err *e);
/* Ends the drain: the device opens again. A device without a drain: nothing happens. Errors as
 * above. */
int draining_end(struct front *f, uint64_t number, struct err *e);
/* Goes on with drained devices. To be called before workers start again. */
void draining_watch(struct front *f, uint64_t now);
/* The launcher's answer to worker_vacate. id: the device's index. */
void draining_vacated(struct front *f, uint64_t id, uint64_t left);
/* How many devices are drained. */
unsigned draining_count(const struct front *f);

#endif
