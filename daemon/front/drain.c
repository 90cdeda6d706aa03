#include "daemon/front/drain.h"

#include "common/clock.h"

uint64_t drain_until(const struct front *f, uint64_t now_ns)
{
    uint64_t longest = DRAIN_MIN_NS;
    for (const struct job *j = f->jobs; j != NULL; j = j->hh.next) {
        if (!job_ended(j) && j->limit_ns > longest) {
            longest = j->limit_ns;
        }
    }
    return ns_add(now_ns, longest < DRAIN_MAX_NS ? longest : DRAIN_MAX_NS);
}
