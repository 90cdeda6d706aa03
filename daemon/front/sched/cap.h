/*
 * A tenant's cap on the time of each device (device_share): a bucket of tokens for each tenant and
 * device. It fills by that percentage of the time that passes, and jobs empty it by their part of
 * the device's time (shares.h), by what they are expected to take when they go, and by what they
 * took when they leave. A tenant whose bucket is empty gets no more of the device until it has
 * filled again. One that used little has what CAP_BURST_NS give in advance.
 *
 * shares.c takes such a tenant out of the device's line meanwhile, so it costs others nothing and
 * saves no virtual time up. Each function is O(log n) or better. Thread: the loop's.
 */
#ifndef FRONT_SCHED_CAP_H
#define FRONT_SCHED_CAP_H

#include "daemon/front/model/front.h"
#include "daemon/front/model/share.h"

#define CAP_BURST_NS (100 * NS_PER_MS)

/* Counts time of the device that the tenant takes; negative: gives back. */
void cap_charge(struct front *f, struct stake *k, int64_t ns);
/* How long the tenant gets nothing of the device; 0: it may go. k NULL: it has used none of it. */
uint64_t cap_wait_ns(const struct stake *k, uint64_t now_ns);
/* Whether the tenant gets nothing of the device now. Then its stake is in the `capped` of the line
 * until it does, and the timer is set for that. */
bool cap_holds(struct front *f, struct stake *k);
/* The timer fired: asks for a turn if a tenant may go again, and for the next wake. */
void caps_watch(struct front *f, uint64_t now_ns);

#endif
