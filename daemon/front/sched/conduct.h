/*
 * Strikes against a tenant, and the pauses that follow from them. A tenant gets a strike when a job
 * of it costs others something (job_strike). With one strike too many it is paused: its jobs are
 * refused until the pause is over. Time without a strike forgives strikes one by one, and a pause
 * is no such time. So in the long run a tenant gets strikes as rarely as they are forgiven. Units:
 * nanoseconds. Thread: the loop's. Never blocks.
 */
#ifndef FRONT_SCHED_CONDUCT_H
#define FRONT_SCHED_CONDUCT_H

#include "common/clock.h"
#include "common/err.h"
#include "daemon/front/model/tenant.h"

#define CONDUCT_STRIKES    5u /* pause a tenant: a single bad kernel is quarantined before */
#define CONDUCT_FORGIVE_NS (600 * NS_PER_S)
#define CONDUCT_PAUSE_NS   (60 * NS_PER_S) /* the first pause; each further strike doubles it */
#define CONDUCT_DOUBLINGS  6u              /* up to 64 minutes */

/* How long it is still paused; 0: it is not. */
uint64_t conduct_paused_ns(const struct conduct *c, uint64_t now_ns);
/* The strikes that are not forgiven yet. */
unsigned conduct_strikes(const struct conduct *c, uint64_t now_ns);
/* Counts a strike. Returns the pause that follows from it; 0: none. */
uint64_t conduct_strike(struct conduct *c, uint64_t now_ns);
/* Checks that the tenant is not paused. ERR_QUARANTINED says for how long, and what ends it. */
int conduct_check(const struct tenant *t, uint64_t now_ns, struct err *e);

#endif
