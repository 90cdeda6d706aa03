/*
 * How the GPUs are, as gpud-monitor tells it in a page of shared memory. The front only reads that
 * page: it never waits. A monitor that hangs in the driver is found out when somebody asks, and
 * ended; one that cannot be ended has no successor, and all is "not known" with that reason.
 * Thread: the loop's.
 */
#ifndef FRONT_MONITOR_H
#define FRONT_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/memfd.h"
#include "proto/health.h"

struct front;
struct device;

struct monitor {
    uint64_t id; /* at the launcher; 0: none runs */
    uint64_t next_id;
    struct memfd page;  /* owned; the last one's, where none runs */
    uint64_t killed_ns; /* when it was told to end, 0: not */
    uint64_t start_ns;  /* not another one before */
    uint64_t watch_ns;  /* when the devices are looked at next */
    char ended[160];    /* why the last one is no more, "": it told an error, or there was none */
};

void monitor_init(struct monitor *m);
void monitor_finish(struct monitor *m);

/* Starts one if there is a device to ask about and none runs; ends one that hangs. */
void monitor_tend(struct front *f);
/* Holds devices back for which the driver wants a recovery, as long as it does: jobs that run go
 * on, no others begin. What is not known changes nothing. Looks once a second at most. */
void monitor_watch(struct front *f, uint64_t now_ns);
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
