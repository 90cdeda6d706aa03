/*
 * Brings modules to devices: compiled once for each architecture by a process of its own, then
 * loaded into the workers that need them. Thread: the loop's.
 */
#ifndef FRONT_MODULES_BUILDING_H
#define FRONT_MODULES_BUILDING_H

#include "daemon/front/model/front.h"

/* Makes the built-in modules and enters their kernels and operations; once at start. */
int building_init(struct front *f, struct err *e);
void building_finish(struct front *f);
/* Builds, then loads on `d`; jobs that wait are offered again when it is there or has failed. */
void building_need(struct front *f, struct module *m, struct device *d);
/* Compiles for the device without loading. ERR_BUSY when the compiler's queue is full. */
int building_compile(struct front *f, struct module *m, const struct device *d, struct err *e);
void building_loaded(struct front *f, struct device *d, const struct msg_w_module *m);
void building_held(struct front *f, struct device *d, const struct msg_w_held_module *m);
void building_device_lost(struct front *f, const struct device *d);
/* Frees a user's module that was unloaded once nothing names it. */
void building_settle(struct front *f, struct module *m);

#endif
