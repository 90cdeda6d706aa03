/*
 * Brings modules to devices: compiled once for each architecture by a process of its own, then
 * loaded into the workers that need them. Thread: the loop's.
 */
#ifndef FRONT_MODULES_BUILDING_H
#define FRONT_MODULES_BUILDING_H

#include "daemon/front/model/front.h"

/* Creates the built-in modules with their kernels and operations; once, at the start. */
int building_init(struct front *f, struct err *e);
void building_finish(struct front *f);
/* Builds the module and loads it on `d`. Jobs that wait are offered again when it is loaded or has
 * failed. */
void building_need(struct front *f, struct module *m, struct device *d);
/* Compiles for the device without loading. ERR_BUSY: the compiler's queue is full. */
int building_compile(struct front *f, struct module *m, const struct device *d, struct err *e);
void building_loaded(struct front *f, struct device *d, const struct msg_w_module *m);
void building_adopt_module(struct front *f, struct device *d,
                           const struct msg_w_inventory_module *m);
void building_device_lost(struct front *f, const struct device *d);
/* Frees an unloaded module of a client once nothing names it. */
void building_settle(struct front *f, struct module *m);

#endif
