/*
 * The share of a tenant: its ready jobs, and how much of each device it has had. sched/shares.h has
 * the rules. Thread: the loop's.
 */
#ifndef FRONT_MODEL_SHARE_H
#define FRONT_MODEL_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/front/model/backlog.h"
#include "daemon/front/model/device.h"
#include "daemon/front/model/line.h"
#include "daemon/front/model/runs.h"

struct tenant;

/* What a tenant has in one class on one device. */
struct stake_class {
    struct runs ready;   /* ready jobs that are bound to the device, by rank */
    struct backlog work; /* how much `ready` is */
    uint32_t seat;       /* in the line of the device, by `served` */
    unsigned flying;     /* jobs in flight */
    uint64_t served;     /* virtual time */
    uint64_t mean_ns;    /* of recent jobs; 0: none has ended */
    uint64_t peak_ns;    /* of recent jobs; falls slowly */
};

struct stake {
    struct tenant *tenant;
    struct line *line;    /* of the device */
    unsigned device;      /* device_shown of it */
    struct stake *passed; /* scratch of class_head, as the next */
    bool away;
    uint64_t spent_ns; /* of the device, since its energy was last divided */
    struct stake *spender_prev, *spender_next; /* in the line's spenders, unless spent_ns is 0 */
    int64_t lack; /* of the tenant's cap, in hundredths of ns; sched/cap.h, as the next two */
    uint64_t lack_at_ns;
    struct heap_entry due; /* in the line's `capped`: the tenant is in the line no more */
    struct stake_class of[CLASS_COUNT];
};

struct share {
    struct runs any[CLASS_COUNT]; /* ready jobs that any device may run, by rank */
    struct backlog any_work[CLASS_COUNT];
    struct stake *stake[DEVICES_MAX]; /* owned, by device_shown; NULL: it has not used it */
};

/* Makes what the tenant, whose share this is, needs to have jobs in the line of the device. false:
 * no memory. */
bool share_join(struct share *s, struct tenant *t, struct device *d);
/* Takes the tenant out of all lines, before their devices are freed. It must have no unfinished
 * jobs. */
void share_finish(struct share *s);

/* The tenant's cap changed: it is looked at anew. */
void share_look(struct share *s);

#endif
