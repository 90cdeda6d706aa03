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
