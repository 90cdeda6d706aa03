#include "daemon/front/model/wake.h"

void wake_at(struct front *f, uint64_t at_ns)
{
    f->wake_ns = at_ns < f->wake_ns ? at_ns : f->wake_ns;
}

void wake_for_pool(struct front *f, struct device *d)
{
    d->pool_changed = true;
    wake_at(f, f->house_ns);
}

void wake_for_job(struct front *f, struct job *j)
{
    agenda_set(&f->deadlines, &j->expiry, j->deadline_ns, j);
    wake_at(f, j->deadline_ns);
}

void turn_end(struct front *f)
{
    uint64_t now = f->clock.now_ns; /* 0: the turn did not need it */
    bool still = now > ns_add(f->awake_ns, STILL_NS);
    f->alive_ns = still || now < f->alive_ns ? f->alive_ns : now;
    f->clock.runs = false;
}

uint64_t wake_still_ns(const struct front *f, uint64_t now_ns)
{
    bool still = now_ns > ns_add(f->awake_ns, STILL_NS);
    return still ? now_ns - (f->alive_ns < f->awake_ns ? f->alive_ns : f->awake_ns) : 0;
}
