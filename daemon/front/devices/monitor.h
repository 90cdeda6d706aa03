/*
 * The health of GPUs, which gpud-monitor writes into a page of shared memory. The front only reads
 * the page and never waits. It notices within a second that a monitor hangs in the driver, and ends
 * it. While a monitor cannot be ended none replaces it, and all health is "not known". So is health
 * that is too old. Thread: the loop's.
 *
 *     none ──start──> runs ──(hangs)──> killed ──(ended)──> none, for a pause that grows
 *                      └──────────────(ended)───────────────┘
 */
#ifndef FRONT_DEVICES_MONITOR_H
#define FRONT_DEVICES_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/memfd.h"
#include "daemon/front/devices/hold_file.h"
#include "proto/health.h"

struct front;
struct device;

struct monitor {
    uint64_t id; /* the launcher's; 0: none runs */
    uint64_t next_id;
    struct memfd page;  /* owned; of the latest monitor */
    uint64_t killed_ns; /* when the front killed it; 0: it did not */
    uint64_t start_ns;  /* none starts before */
    uint64_t pause_ns;  /* after an end; grows until a monitor reports a device */
    uint64_t watch_ns;  /* when the devices are checked next */
    char ended[160];    /* why the latest one ended; "": its page says so, or there was none */
    struct hold_file hold_file; /* holds, also of former fronts */
};

/* Starts no process yet. ERR_NOMEM. */
int monitor_create(struct monitor **ret_monitor, struct err *e);
void monitor_destroy(struct monitor *m); /* does not end the process; NULL is accepted */

/* A device may need the monitor: wakes monitor_watch. A device that a former front held is held
 * until its driver's wish is known. */
void monitor_wake(struct front *f, struct device *d);
/* To be called once a second while a device needs it, and for the table `devices`. Starts a monitor
 * if none runs, and ends one that hangs. Holds devices while their driver wants a recovery: their
 * jobs go on, and no others begin. Unknown health neither holds a device nor lifts a hold for two
 * minutes; then the device serves again, with a warning. away: the front stood still before. */
void monitor_watch(struct front *f, uint64_t now_ns, bool away);
/* The recovery in words; static. */
const char *monitor_recovery_text(uint64_t recovery);
/* The health of a device and its age. false: it is not known, for the reason `why`; "" for a device
 * that the management library does not know. */
bool monitor_read(struct front *f, const struct device *d, struct health_device *ret_health,
                  uint64_t *ret_age_ns, char *why, size_t why_size);

/* Reports of the launcher. false: the id is not a monitor's. */
bool monitor_started(struct front *f, uint64_t id, int code, const char *text);
bool monitor_ended(struct front *f, uint64_t id);
/* The launcher ended, and the monitor with it. */
void monitor_orphaned(struct front *f);

#endif
