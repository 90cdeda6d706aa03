#include "daemon/front/device.h"

#include <stdio.h>

void device_set_state(struct device *d, enum device_state state, const char *reason)
{
    d->state = state;
    (void)snprintf(d->reason, sizeof d->reason, "%s", reason != NULL ? reason : "");
}

const char *device_state_name(enum device_state state)
{
    static const char *const names[] = {
        [DEVICE_STARTING] = "starting",  [DEVICE_ADOPTING] = "adopting",
        [DEVICE_PROBING] = "probing",    [DEVICE_READY] = "ready",
        [DEVICE_WAITING] = "restarting", [DEVICE_ABSENT] = "absent",
        [DEVICE_STUCK] = "stuck",
    };
    return names[state];
}

bool device_serves(const struct device *d)
{
    /* one whose worker is being ended stays in its state until the launcher has reaped it */
    return d->state == DEVICE_READY && d->killed_ns == 0 && d->link != NULL;
}

bool device_hopeful(const struct device *d)
{
    return d->state != DEVICE_ABSENT && d->state != DEVICE_STUCK;
}

int device_staging_create(struct device *d, uint64_t input, uint64_t output, struct err *e)
{
    int rc = memfd_create_sealed("gpud-input", input, &d->input, e);
    if (rc != 0) {
        return rc;
    }
    rc = memfd_create_sealed("gpud-output", output, &d->output, e);
    if (rc != 0) {
        memfd_finish(&d->input);
        return rc;
    }
    range_init(&d->input_range, input, STAGING_ALIGN);
    range_init(&d->output_range, output, STAGING_ALIGN);
    return 0;
}

void device_staging_finish(struct device *d)
{
    range_finish(&d->input_range);
    range_finish(&d->output_range);
    memfd_finish(&d->input);
    memfd_finish(&d->output);
}
