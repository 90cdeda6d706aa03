#include "daemon/front/workers/worker_end.h"

#include <signal.h>
#include <stdio.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/model/about.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/workers/blame.h"

#define UNKILLABLE_NS (5 * NS_PER_S)

uint64_t worker_unkillable_at(const struct device *d)
{
    return ns_add(d->killed_ns, UNKILLABLE_NS);
}

void worker_dismiss(struct front *f, struct device *d, const char *why)
{
    struct err e = ERR_INIT;
    if (d->worker == 0 || d->killed_ns != 0) {
        return;
    }
    d->killed_ns = front_now(f);
    wake_at(f, worker_unkillable_at(d));
    (void)snprintf(d->ending, sizeof d->ending, "%s", why);
    if (f->io.kill(f->launcher, d->worker, SIGKILL, &e) != 0) {
        log_about(LOG_WORKER_STAYS, about_device(d), "device %u: %s", device_shown(d), e.text);
    }
}

void worker_end(struct front *f, struct device *d, struct job *culprit, const char *why)
{
    if (d->worker == 0 || d->killed_ns != 0) {
        return;
    }
    struct err e = ERR_INIT;
    char doing[BLAME_MAX];
    d->killed_ns = front_now(f);
    wake_at(f, worker_unkillable_at(d));
    if (culprit != NULL) { /* NULL keeps the culprit that the worker has named */
        d->culprit = culprit;
    }
    (void)snprintf(d->ending, sizeof d->ending, "%s", why);
    blame_text(d, doing);
    log_about(LOG_WORKER_ENDS, about_device(d), "device %u: ending worker %d: %s; %s",
              device_shown(d), (int)d->pid, why, doing);
    if (f->io.kill(f->launcher, d->worker, SIGKILL, &e) != 0) {
        log_about(LOG_WORKER_STAYS, about_device(d), "device %u: %s", device_shown(d), e.text);
    }
}
