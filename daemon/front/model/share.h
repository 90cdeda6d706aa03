/*
 * The share of a tenant: its ready jobs, and how much of each device it has had. sched/shares.h has
 * the rules. Thread: the loop's.
 */
#ifndef FRONT_MODEL_SHARE_H
#define FRONT_MODEL_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/front/model/device.h"
#include "daemon/front/model/heap.h"
#include "daemon/front/model/line.h"
#include "daemon/front/model/runs.h"

/* What a tenant has in one class on one device. */
struct stake_class {
    struct runs ready; /* ready jobs that are bound to the device, by rank */
    struct heap_entry
        entry;          /* in the line of the device, by a `served` that may have grown since */
    uint64_t served;    /* virtual time; only grows */
    uint64_t refund_ns; /* what it was charged too much: later charges are less */
    uint64_t mean_ns;   /* of recent jobs; 0: none has ended */
    unsigned flying;    /* jobs in flight */
};

struct stake {
    struct share *share;
    struct line *line; /* of the device */
    struct stake_class of[CLASS_COUNT];
};

struct share {
    uint64_t key;                     /* the tenant's; decides among equals */
    uint64_t weight;                  /* 1 … WEIGHT_MAX */
    struct runs any[CLASS_COUNT];     /* ready jobs that any device may run, by rank */
    struct stake *stake[DEVICES_MAX]; /* owned; NULL: it has not used the device */
    uint64_t device_ns;               /* time of all devices together */
};

/* Makes what the tenant needs to have jobs in the line of the device. false: no memory. */
bool share_join(struct share *s, struct device *d);
/* Takes it out of all lines, before their devices are freed. It must have no unfinished jobs. */
void share_finish(struct share *s);

#endif
