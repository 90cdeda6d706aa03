#include "daemon/front/workers/departing.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/model/wake.h"

void departing_add(struct front *f, uint64_t worker, const char *backend, unsigned number,
                   uint64_t owner)
{
    if (f->departing_count == PLACES_MAX) {
        log_say(LOG_WORKER_UNKNOWN, "more workers of a former gpud end than there may be devices");
        return;
    }
    struct departing *x = &f->departing[f->departing_count++];
    *x = (struct departing){.worker = worker, .number = number, .owner = owner};
    (void)snprintf(x->backend, sizeof x->backend, "%s", backend);
}

static bool is_of(const struct departing *x, const struct device *d)
{
    return x->number == d->number && x->owner == tenant_key(d->owner) &&
           strcmp(x->backend, d->backend) == 0;
}

bool departing_has(const struct front *f, const struct device *d)
{
    bool found = false;
    for (unsigned i = 0; i < f->departing_count; i++) {
        found = found || is_of(&f->departing[i], d);
    }
    return found;
}

static void release(struct front *f)
{
    struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        if (d->state == DEVICE_WAITING && d->restart_ns == NS_NEVER && !departing_has(f, d)) {
            d->restart_ns = front_now(f);
        }
    }
    wake_at(f, front_now(f));
}

bool departing_ended(struct front *f, uint64_t worker)
{
    for (unsigned i = 0; i < f->departing_count; i++) {
        if (f->departing[i].worker == worker) {
            f->departing[i] = f->departing[--f->departing_count];
            release(f);
            return true;
        }
    }
    return false;
}

void departing_orphaned(struct front *f)
{
    f->departing_count = 0;
    release(f);
}
