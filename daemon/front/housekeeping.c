#include "daemon/front/housekeeping.h"

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/modules/compiler.h"
#include "daemon/front/sched/conclude.h"
#include "daemon/front/sched/queue.h"
#include "daemon/front/workers/command.h"

void housekeeping_expire(struct front *f, uint64_t now)
{
    struct job *j;
    while ((j = agenda_due(&f->deadlines, now)) != NULL && turn_take(f, 1)) {
        agenda_drop(&f->deadlines, &j->expiry);
        if (j->state != JOB_QUEUED) {
            continue; /* a worker has it; if it is queued again, it enters the agenda again */
        }
        struct err e = ERR_INIT;
        (void)err_set(&e, ERR_DEADLINE, "its deadline passed while it waited for %s",
                      j->wait == WAIT_ALONE ? "its turn to run alone" : job_wait_name(j->wait));
        job_conclude(f, j, JOB_FAILED, &e);
    }
    wake_at(f, agenda_next_ns(&f->deadlines));
}

void housekeeping(struct front *f, uint64_t now)
{
    bool again = false;
    if (now < f->house_ns) {
        wake_at(f, f->house_ns);
        return;
    }
    f->house_ns = ns_add(now, NS_PER_S);
    struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        if (d->pool_changed) {
            d->pool_changed = false;
            command_pool(d, false);
        }
    }
    log_tend();
    if (f->compiler != NULL) {
        wake_at(f, compiler_tend(f->compiler, now));
    }
    again = queue_offer_awaiting(f);
    if (again) {
        wake_at(f, f->house_ns);
    }
}
