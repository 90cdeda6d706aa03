#include "daemon/front/workers/rest.h"

#include "common/log.h"
#include "daemon/front/model/about.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/workers/evacuate.h"
#include "daemon/front/workers/worker_end.h"

/* Nothing would be lost with its worker. */
static void leave(struct front *f, struct device *d)
{
    d->evacuation.state = EVACUATION_NONE;
    worker_dismiss(f, d, d->reason);
    wake_at(f, front_now(f));
}

void rest_begin(struct front *f, struct device *d, const char *why)
{
    if (d->owner != NULL) {
        log_about(LOG_DOMAIN, about_device(d), "device %u: the worker of tenant %s ends: %s",
                  device_shown(d), d->owner->name, why);
    } else {
        log_debug("device %u: its worker ends: %s", device_shown(d), why);
    }
    d->wanted = d->place.yields = false;
    device_set_state(d, DEVICE_RESTING, why);
    evacuate_begin(f, d);
    if (d->evacuation.state == EVACUATION_OVER) {
        leave(f, d);
    }
}

void rest_stay(struct front *f, struct device *d)
{
    evacuate_cancel(f, d);
    d->wanted = false;
    d->used_ns = front_now(f);
    device_set_state(d, DEVICE_READY, "");
    f->hooks.device_changed(f, d);
    f->hooks.worker_takes(f, d);
    f->hooks.kick(f);
    wake_at(f, front_now(f)); /* another domain may wait for its end */
}

bool rest_evacuates(const struct device *d)
{
    return d->state == DEVICE_RESTING && d->evacuation.state != EVACUATION_NONE &&
           d->killed_ns == 0 && d->link != NULL;
}

void rest_go_on(struct front *f, struct device *d, uint64_t now)
{
    uint64_t late_ns = evacuate_late_ns(d);
    if (d->evacuation.state == EVACUATION_OVER) {
        leave(f, d);
    } else if (d->evacuation.state == EVACUATION_FAILED) {
        d->place.since_ns = now; /* others are asked to leave first */
        rest_stay(f, d);
    } else if (now >= late_ns) {
        worker_end(f, d, NULL, "it does not copy its buffers to the host");
    } else {
        wake_at(f, late_ns);
    }
}
