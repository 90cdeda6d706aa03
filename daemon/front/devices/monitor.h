/*
 * The health of GPUs, which gpud-monitor writes into a page of shared memory. The front only reads
 * the page and never waits. It checks every second whether the monitor hangs in the driver, and
 * ends one that does. While a monitor cannot be ended no other one starts, and all health is "not
 * known". Health that is too old is "not known" as well. Thread: the loop's.
 *
 *     none ──start──> runs ──(hangs)──> killed ──(ended)──> none, for a pause that grows
 *                      └──────────────(ended)───────────────┘
 *
 * The management library has every GPU open, so no monitor runs while one of them is drained
 * (draining.h): the front kills a running monitor, and the next starts without a pause.
 */
#ifndef FRONT_DEVICES_MONITOR_H
#define FRONT_DEVICES_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/memfd.h"
#include "proto/health.h"

struct front;
struct device;

struct monitor {
    uint64_t id; /* the launcher's; 0: none runs */
    uint64_t next_id;
    struct memfd page;  /* owned; of the latest monitor */
    uint64_t killed_ns; /* when the front killed it; 0: it did not */
    uint64_t start_ns;  /* no monitor starts before */
    uint64_t pause_ns;  /* after an end; grows until a monitor reports a device */
    uint64_t watch_ns;  /* when the devices are checked next */
    char ended[160]; /* why the latest monitor ended; "": its page has the reason, or none ended */
};

/* Starts no process yet. ERR_NOMEM. */
int monitor_create(struct monitor **ret_monitor, struct err *e);
void monitor_destroy(struct monitor *m); /* does not end the process; NULL is accepted */

/* A device may need the monitor: wakes monitor_watch. A device in the hold file gets no jobs until
 * its driver was asked. */
void monitor_wake(struct front *f, struct device *d);
/* Called once a second while a device needs it, and for each table `devices`. Starts a monitor if
 * none runs, and ends one that hangs. Holds devices while their driver wants a recovery: their jobs
 * go on, and no others begin. Unknown health sets no hold. It lifts one after two minutes, with a
 * warning. away: the front itself stood still before, and the monitor gets a second to report. */
void monitor_watch(struct front *f, uint64_t now_ns, bool away);
/* The device is drained, and its workers have ended. true: no monitor has it open. Else one is
 * being ended. */
bool monitor_leaves(struct front *f, const struct device *d);
/* The recovery in words, a static string. */
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
