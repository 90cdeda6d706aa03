/*
 * What metrics count of jobs as they end, beside what the front counts anyway: histograms for each
 * device, errors by device, the time of copies, and the time that each tenant had of each device. A
 * job costs a bounded number of steps. Thread: the loop's.
 */
#ifndef FRONT_METRICS_TALLY_H
#define FRONT_METRICS_TALLY_H

#include <stdint.h>

#include "daemon/front/metrics/histogram.h"
#include "daemon/front/model/device_set.h"
#include "daemon/front/model/job.h"

#define TENANTS_SHOWN 200u                 /* tenants with rows of their own */
#define TENANT_ROWS   (TENANTS_SHOWN + 1u) /* the first row has all others together */
#define TALLY_OTHERS  "other"              /* what that row is called */
#define TALLY_ERRORS  64u                  /* errors by their codes, without the sign */

struct front;

enum tally_time { TALLY_QUEUE, TALLY_EXECUTION, TALLY_DURATION, TALLY_TIMES };
enum tally_copy { TALLY_TO_DEVICE, TALLY_FROM_DEVICE, TALLY_COPIES };

/* Of jobs that were on one device, on its domains too. Zeroed: none were. */
struct tally {
    struct histogram time[TALLY_TIMES];
    uint64_t errors[TALLY_ERRORS];
    uint64_t copy_ns[TALLY_COPIES];
};

/* Time that a tenant had of devices. An account that is begun anew begins this anew. */
struct tally_busy {
    uint64_t since_ns; /* of its account; the row of others has none */
    uint64_t ns[DEVICES_MAX];
};

struct tallies {
    uint64_t started_ns; /* wall clock: when counting began */
    struct tally none;   /* jobs that were on no device */
    struct tally device[DEVICES_MAX];
    struct tally_busy busy[TENANT_ROWS];
};

/* The row of the account at this index of the file of accounts. An account keeps its row: no
 * counter of the row for others falls because a tenant gets a row of its own. */
unsigned tally_row(unsigned account_index, const char *name);
unsigned tally_tenant_row(const struct front *f, const struct tenant *t);
/* The job has ended, and its steps are still there. Jobs of the daemon itself do not count, nor
 * does a job whose end an earlier front has counted. Costs O(n log n) for n steps. */
void tally_job(struct tallies *t, const struct front *f, const struct job *j);

#endif
