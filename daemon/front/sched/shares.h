/*
 * Which tenant's job a device gets next: fair queueing of device time.
 *
 * Each device has a line for each class. Realtime jobs go first, then interactive ones, then batch
 * jobs. Within a class the tenant goes first that has had the least of the device, divided by its
 * weight: its virtual time `served`. A tenant that had no ready jobs continues at the line's clock,
 * so time that a tenant did not use is not saved up (start-time fair queueing: P. Goyal, H. Vin,
 * H. Cheng, SIGCOMM 1996). The clock is the virtual time of the tenant that was due when a job was
 * taken last: a turn may go on with jobs of a tenant that has had more. Among a tenant's own jobs
 * the smallest rank goes first.
 *
 * A job is charged when it is taken, by the mean of the tenant's recent jobs; what it took replaces
 * that when it leaves. Until then a tenant with long jobs, or of whose jobs none has ended, may
 * have all streams but one beside others, so that these find a stream free. Jobs that run beside
 * each other divide the time: a job is charged for its own time, divided by the number of streams
 * that had jobs meanwhile. That is also what its tenant's account gets (sched/charge.h).
 *
 * Batch jobs get at least a part of the device while other classes want all of it (batch_percent):
 * `owed_ns` counts what they are behind, and one goes if that is above 0. While a device has had
 * jobs of other classes within LIVELY_NS, it has at most one batch job in flight otherwise, so that
 * a job of another class waits for one batch job at most.
 *
 * A tenant at its cap (cap.h) is in the line no more until it may go again.
 *
 * Domains of a device (domain.h) share its hardware, and so its line: a tenant has the same virtual
 * time there whatever worker it runs in. Where a worker takes no job now, the next tenant goes.
 * turns.h says which of the workers may have jobs in flight. Where they take turns, the virtual
 * time of a job also has the time for which its stream was kept for it and did nothing; its
 * tenant's account does not.
 *
 * Each function costs O(log n) for n tenants with ready jobs, or O(log n) for each device where a
 * job may run on any. Thread: the loop's.
 */
#ifndef FRONT_SCHED_SHARES_H
#define FRONT_SCHED_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/front/model/front.h"

#define LIVELY_NS (100 * NS_PER_MS)
#define OWED_MAX  ((int64_t)(200 * NS_PER_MS)) /* more is not made up for */

/* Gives the tenant a place in the lines that the job may stand in. false: no memory. */
bool shares_reserve(struct front *f, struct tenant *t, const struct job *j);
/* The job is ready. Places for it are reserved. */
void shares_put(struct front *f, struct job *j);
void shares_drop(struct front *f, struct job *j); /* not put: nothing happens */
/* Whether a job is ready that the device may run. */
bool shares_wait(const struct front *f, struct device *d);
/* The job that the device, or one of its domains, is to get next; it remains in the line. NULL:
 * no job is ready, but for devices that are `shut`, for batch jobs that have to wait for the one in
 * flight, and for jobs of any device that it leaves to others (predict_elsewhere). d: no
 * domain. */
struct job *shares_head(struct front *f, struct device *d);
/* The class of that job if batch jobs were owed nothing. */
unsigned shares_class(struct front *f, struct device *d);
/* The job that this worker is to get next, whatever waits for the others of its device: of the
 * device itself or of a domain. The others become `shut`. NULL: as above. */
struct job *shares_own_head(struct front *f, struct device *d);
/* Whether a job is ready for a worker of the device that is not `shut`, whatever holds it back. d:
 * no domain. */
bool shares_any(struct front *f, struct device *d);
/* Where a ready job would run: on the device, or on the domain of its tenant there. */
struct device *shares_goal(const struct job *j, struct device *base);
/* The job's tenant pays for time of the device in which nothing ran, for its sake. j: ready, and in
 * the device's line. base: no domain. */
void shares_pay(const struct job *j, struct device *base, uint64_t ns);
/* Whether batch jobs wait for the one that is in flight on the device. They do not if all that it
 * has in flight has outstayed its turn. */
bool shares_hold_batch(struct front *f, struct device *d);
/* Number of ready jobs of its tenant before it in the same line, at most `max`. */
unsigned shares_ahead(const struct job *j, unsigned max);
/* The job goes to its device, or is found there after an adoption, when no line has it. */
void shares_taken(struct front *f, struct job *j);
void shares_adopted(struct front *f, struct job *j);
/* The job leaves its device, after it ran there for so long. Returns its part of the device's time:
 * 0 for the daemon's own jobs, and for one that is on no device. */
uint64_t shares_left(struct front *f, struct job *j, uint64_t ran_ns);
/* Brings `spent_ns` of the device's stakes up to now: jobs in flight count as far as they came. */
void shares_spend(struct front *f, struct device *d);

#endif
