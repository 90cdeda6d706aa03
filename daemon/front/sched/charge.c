#include "daemon/front/sched/charge.h"

#include "common/err.h"

void charge_run(struct job *j, uint64_t device_ns, bool moved)
{
    if (j->tenant == NULL || j->counted) {
        return;
    }
    j->device_ns += device_ns;
    account_time(j->tenant->account, device_ns);
    if (moved) {
        account_moved(j->tenant->account, j->to_device, j->from_device);
    }
}

static enum account_result result_of(const struct job *j)
{
    switch (j->state) {
    case JOB_DONE:
        return ACCOUNT_DONE;
    case JOB_CANCELLED:
        return ACCOUNT_CANCELLED;
    case JOB_LOST:
        return ACCOUNT_LOST;
    default:
        return j->error.code == ERR_DEADLINE ? ACCOUNT_DEADLINE : ACCOUNT_FAILED;
    }
}

void charge_end(const struct job *j)
{
    if (j->tenant != NULL && !j->counted) {
        account_job(j->tenant->account, result_of(j));
    }
}

void charge_refused(struct front *f, struct tenant *t, int code)
{
    unsigned error = (unsigned)-code;
    if (error < FRONT_ERRORS) {
        f->count.rejected[error]++;
    }
    account_job(t->account, ACCOUNT_REFUSED);
}
