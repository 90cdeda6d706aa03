#include "daemon/front/sched/drain.h"

#include "common/clock.h"
#include "daemon/front/model/domain.h"
#include "daemon/front/sched/queue.h"

uint64_t drain_until(const struct front *f, uint64_t now_ns)
{
    uint64_t longest = DRAIN_MIN_NS;
    for (const struct job *j = f->jobs; j != NULL; j = j->hh.next) {
        if (!job_ended(j) && job_limit_ns(j) > longest) {
            longest = job_limit_ns(j);
        }
    }
    return ns_add(now_ns, longest < DRAIN_MAX_NS ? longest : DRAIN_MAX_NS);
}

/* The client of a lingering session may not come back. */
static bool orphan(const struct job *j)
{
    bool left = j->session == NULL || j->session->state != SESSION_CONNECTED;
    return j->state == JOB_QUEUED && j->detached && left;
}

static bool stranded(const struct front *f, const struct job *j)
{
    bool coming = false;
    for (unsigned i = 0; i < f->device_count; i++) {
        const struct device *d = domain_of(j->tenant, f->device[i]);
        coming = coming || (d != NULL && (j->device == NULL || j->device == d) && device_coming(d));
    }
    return !coming;
}

unsigned drain_orphans(struct front *f, unsigned *ret_stranded)
{
    unsigned count = 0;
    unsigned left = 0;
    for (struct job *j = f->queued_count > 0 ? f->jobs : NULL; j != NULL; j = j->hh.next) {
        if (!orphan(j)) {
            continue;
        }
        if (stranded(f, j)) {
            left++;
        } else {
            queue_first(f, j);
            count++;
        }
    }
    *ret_stranded = left;
    return count;
}
