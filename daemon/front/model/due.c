#include "daemon/front/model/due.h"

void due_at(struct front *f, uint64_t at_ns)
{
    f->due_ns = at_ns < f->due_ns ? at_ns : f->due_ns;
}

void due_pool(struct front *f, struct device *d)
{
    d->pool_changed = true;
    due_at(f, f->house_ns);
}

void due_job(struct front *f, struct job *j)
{
    agenda_set(&f->deadlines, &j->expiry, j->deadline_ns, j);
    due_at(f, j->deadline_ns);
}
