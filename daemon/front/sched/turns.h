/*
 * Turns of the workers of a device. Contexts of one device share it by the driver's time slices
 * only: a job of one worker would delay those of all others. So a device that has domains
 * (domain.h) is one worker's at a time, as long as jobs of others are ready for it. The next
 * worker follows from shares.h, as if all jobs were in one worker: a turn goes to the worker of the
 * job that is due. It begins when the worker before it has nothing in flight.
 *
 * A switch costs the time between the last end in one worker and the first begin in the next. One
 * that takes far longer than others counts as twice their mean: its worker waited for a processor.
 * A turn lasts TURN_COSTS times what switches have cost lately, within TURN_LEAST_NS and
 * TURN_MOST_NS, so that at most a twentieth of the time goes to switches, where every other turn is
 * cut. Until then the worker goes on with jobs that are not due, as far as they are expected to end
 * in the turn. A turn is cut for a job of an earlier class: its worker gets no more. A worker
 * without ready jobs has no turn to keep.
 *
 * A turn is also cut for a worker whose last turn ended because it had no job left: its tenant has
 * few jobs, and would wait for a whole turn with each. It pays for the switch and for the way back
 * with its share of the device, as much as the other would have been charged meanwhile. So it cuts
 * turns only as long as it gets less than its share, and what the others lose is what they had
 * beyond theirs. A worker that always has jobs cuts no turn. For the same reason tenants are
 * charged for all of the time in which the device is kept for their jobs (shares.c: kept_ns):
 * between brief jobs it does nothing, and nobody else has it.
 *
 * A worker gets a job beyond one for each stream and one behind them only as long as what is in
 * flight is expected to end within TURN_LEAST_NS, since the next turn begins when it has.
 *
 * A turn overruns if no job of its worker ends within turn_overrun_ms after its end, while others
 * wait. If a job is seen to run, and the worker has given a sign of life since, a domain's worker
 * is ended, as its tenant is the only one that uses it, and the job's kernels get a strike. A
 * shared worker is not ended, nor one that waits for copies or memory: the others no longer wait
 * for it.
 *
 * While one worker has all that is ready, nothing of this happens. No clock but the front's; no
 * I/O. Thread: the loop's.
 */
#ifndef FRONT_SCHED_TURNS_H
#define FRONT_SCHED_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/front/model/front.h"

#define TURN_COSTS    40u
#define TURN_LEAST_NS (2 * NS_PER_MS)
#define TURN_MOST_NS  (200 * NS_PER_MS)

uint64_t turn_length_ns(const struct turn *t);
/* A switch took so long. */
void turn_cost(struct turn *t, uint64_t ns);
/* What a cut of the turn costs: what its holder would have been charged in the time of a switch and
 * of the way back. The turn has a holder. */
uint64_t turn_price_ns(const struct turn *t);
/* Whether the workers of the device take turns. d: no domain. */
static inline bool turns_apply(const struct front *f, const struct device *d)
{
    return d->domains != NULL && !device_listed(d, f->config.mps_devices);
}
/* The job that the device is to get next, and the worker that it goes to as soon as that takes one.
 * It is that worker's turn then; the job remains in the line. NULL: none is ready, or it has to
 * wait. base: no domain. */
struct job *turns_head(struct front *f, struct device *base, struct device **ret_worker);
/* For turns_ended. */
void turns_measure(struct device *d, const struct job *j);
/* A job of the worker is done, or failed, and has its times. */
static inline void turns_ended(struct device *d, const struct job *j)
{
    if (d->base != NULL || d->domains != NULL) {
        turns_measure(d, j);
    }
}
/* Looks for turns that overrun, and sets the timer for the next look. away: the process stood
 * still; the time until now does not count. */
void turns_watch(struct front *f, uint64_t now_ns, bool away);

#endif
