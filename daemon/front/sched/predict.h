/*
 * When jobs will end, by what jobs of their kinds took (model/forecast.h) and by what is before
 * them in line. Predictions are estimates: they go by the tenants and jobs that are in line now,
 * and take each tenant's part of a device to be its weight's. Jobs that come later, or whose times
 * are not known, are not in them.
 *
 * A job begins when the device is done with what it has in flight, with the ready jobs of earlier
 * classes, with the tenant's own jobs before it, and with what others of its class get meanwhile.
 * Jobs that any device may run go first to the devices that have the least of their own.
 *
 * Thread: the loop's. O(slots of deadlines) (model/backlog.h), and for jobs that any device may run
 * O(devices log devices).
 */
#ifndef FRONT_SCHED_PREDICT_H
#define FRONT_SCHED_PREDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/front/model/forecast.h"
#include "daemon/front/model/front.h"

struct prediction {
    uint64_t begin_ns; /* 0: unknown */
    uint64_t end_ns;
    bool sure; /* the times of the job, and of its tenant's before it, are known */
};

/* The device time that the job is expected to take there: of its kind, or else of its tenant's
 * recent jobs. ns 0: unknown. */
struct estimate predict_cost(const struct job *j, const struct device *d);
/* The same on its device; if it may run on several, on the mean of those. */
struct estimate predict_time(const struct front *f, const struct job *j);
/* shares.c calls these: the job is in line; it no longer is. */
void predict_ready(struct front *f, struct job *j);
void predict_taken(struct front *f, struct job *j);
/* The job is done, and took so long. */
void predict_learn(const struct job *j, uint64_t ns);
/* When the job will begin and end. Unknown for one that waits for other jobs (outlook.h), kernels
 * or memory, or for a worker that does not serve. */
struct prediction predict_job(struct front *f, const struct job *j);
/* The same of a job that will be ready later: once its device, which works for its tenant since
 * `from_ns`, has done `work_ns` of that, and what others get meanwhile. */
struct prediction predict_behind(struct front *f, const struct job *j, uint64_t from_ns,
                                 uint64_t work_ns);
/* Whether the device has so much to do that a job may wait longer than buffers take to move. */
bool predict_busy(struct front *f, struct device *d);
/* How long a new job would wait for its turn if it were bound to the device. The tenant's cap does
 * not count. sure: the times of all jobs before it are known. */
struct estimate predict_wait(struct front *f, const struct job *j, struct device *d);
/* Whether a job that begins after so long would miss a deadline that is `left_ns` away, by the
 * margin of a prediction. */
bool predict_late(uint64_t wait_ns, uint64_t left_ns);
/* The least time until the cap of its tenant (cap.h) lets it go to a device that it may run on; 0:
 * it may go. */
uint64_t predict_cap_ns(struct front *f, const struct job *j);
/* Whether the device leaves a job that any device may run to another device. Either the other one
 * will finish it earlier, and there is too little such work for all devices, or this device has
 * enough in flight. The device does not wait for longer than it would take itself, and does not
 * leave jobs while others are bound to it. The job's tenant has a worker there (domain_of). */
bool predict_elsewhere(struct front *f, struct device *base, const struct job *j);
/* Whether a job that would be ready now can begin by its deadline, and leaves those of its tenant
 * as they can be kept. ERR_DEADLINE has the times in its text. A job is refused only if its own
 * time is known; those before it count by what is known of them. Its place (shares_reserve) is
 * there. */
int predict_admit(struct front *f, const struct job *j, struct err *e);
/* The second of that, of a job that goes before others with `with_ns` of jobs that it waits for. */
int predict_room(struct front *f, const struct job *j, uint64_t with_ns, struct err *e);

#endif
