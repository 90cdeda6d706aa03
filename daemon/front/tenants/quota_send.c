#include "daemon/front/tenants/quota_send.h"
#include "daemon/front/workers/worker_end.h"

#include "proto/codec.h"

bool quota_limited(const struct tenant *t)
{
    const struct tenant_quota q = tenant_quota(t, UINT64_MAX);
    return q.hard != UINT64_MAX || q.soft != UINT64_MAX || q.guaranteed != 0 ||
           q.spilled != UINT64_MAX;
}

bool quota_reaches(const struct device *d)
{
    return d->progress >= WORKER_UP && d->quota_epoch == d->epoch;
}

void quota_send(struct front *f, struct device *d, struct tenant *t)
{
    if (!quota_reaches(d) || d->link == NULL || (d->owner != NULL && d->owner != t)) {
        return;
    }
    const struct tenant_quota q = tenant_quota(t, device_whole(d));
    bool keeps = !d->overpromised && (d->owner != NULL || !t->apart);
    const struct msg_f_tenant m = {.tenant = tenant_key(t),
                                   .name = bytes_str(t->name),
                                   .hard = q.hard,
                                   .soft = q.soft,
                                   .guaranteed = keeps ? q.guaranteed : 0,
                                   .spilled = q.spilled};
    struct err e = ERR_INIT;
    t->use[d->index].kept = m.guaranteed;
    if (d->front->io.send(d->link, &schema_msg_f_tenant, &m, NULL, &e) != 0) {
        worker_end(f, d, NULL, e.text);
    }
}

void quota_send_all(struct front *f, struct tenant *t)
{
    struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        quota_send(f, d, t);
    }
}

void quota_forget(struct front *f, struct tenant *t)
{
    if (quota_limited(t)) {
        t->limits = TENANT_UNLIMITED;
        quota_send_all(f, t);
    }
}
