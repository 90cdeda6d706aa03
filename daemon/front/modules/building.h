/*
 * Brings modules to devices: compiles a module once for each architecture (compiler.h), then loads
 * it into the workers that need it. Thread: the loop's.
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
/* Does a process compile for the device, or for a domain of it? It may have the device open. */
bool building_runs(const struct front *f, const struct device *base);
/* The worker answered a load. */
void building_loaded(struct front *f, struct device *d, const struct msg_w_module *m);
/* An adopted worker reports a module, which it has to unload. */
void building_adopt_module(struct front *f, struct device *d,
                           const struct msg_w_inventory_module *m);
/* The worker ended, and its modules with it. */
void building_device_lost(struct front *f, const struct device *d);
/* Frees an unloaded module of a client once nothing names it. */
void building_settle(struct front *f, struct module *m);

#endif
