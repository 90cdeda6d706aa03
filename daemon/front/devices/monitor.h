/*
 * How the GPUs are, as gpud-monitor tells it in a page of shared memory. The front only reads that
 * page: it never waits. A monitor that hangs in the driver is found out within a second, whether
 * somebody asks or not, and ended; one that cannot be ended has no successor, and all is "not
 * known" with that reason. So is what was told too long ago. Thread: the loop's.
 */
#ifndef FRONT_DEVICES_MONITOR_H
#define FRONT_DEVICES_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/memfd.h"
#include "daemon/front/devices/held.h"
#include "proto/health.h"

struct front;
struct device;

struct monitor {
    uint64_t id; /* at the launcher; 0: none runs */
    uint64_t next_id;
    struct memfd page;  /* owned; the last one's, where none runs */
    uint64_t killed_ns; /* when it was told to end, 0: not */
    uint64_t start_ns;  /* not another one before */
    uint64_t pause_ns;  /* from one's end on; grows until one tells of a device */
    uint64_t watch_ns;  /* when the devices are looked at next */
    char ended[160];    /* why the last one is no more, "": it told an error, or there was none */
    struct held held;   /* what devices are held for, also by a front before this one */
};

/* None runs yet. ERR_NOMEM. */
int monitor_create(struct monitor **ret_monitor, struct err *e);
void monitor_destroy(struct monitor *m); /* does not end the process; NULL is accepted */

/* There may be a device to ask about: monitor_watch is due. One that serves now and was held by a
 * front before this one is so still, until it is known whether its driver still asks. */
void monitor_wake(struct front *f, struct device *d);
/* Once a second while there is a device to ask about, and when somebody looks. Starts a monitor if
 * none runs, ends one that hangs. Holds devices back for which the driver wants a recovery, as long
 * as it does: jobs that run go on, no others begin. What is not known holds nobody back and lets
 * nobody go, for two minutes; then a held device serves again, with a warning. away: the front
 * stood still before. */
void monitor_watch(struct front *f, uint64_t now_ns, bool away);
/* What the driver asks for, in words; static. */
const char *monitor_recovery_text(uint64_t recovery);
/* What it told of a device; ret_age_ns: how long ago. false: `why` says why nothing is known, "" of
 * a device that nobody can ask about. */
bool monitor_read(struct front *f, const struct device *d, struct health_device *ret_health,
                  uint64_t *ret_age_ns, char *why, size_t why_size);

/* false: not one of mine */
bool monitor_started(struct front *f, uint64_t id, int code, const char *text);
bool monitor_ended(struct front *f, uint64_t id);
/* The launcher is gone, and what it started with it. */
void monitor_orphaned(struct front *f);

#endif
