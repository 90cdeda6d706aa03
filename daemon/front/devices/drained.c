#include "daemon/front/devices/drained.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/log.h"
#include "daemon/front/model/about.h"
#include "daemon/front/model/wake.h"

/* The tenant that asked for the drain, and the time. */
static void write_origin(const struct device *d, char *out, size_t size)
{
    time_t since = (time_t)d->drain.since_s;
    struct tm tm;
    char at[32] = "";
    if (gmtime_r(&since, &tm) != NULL) {
        (void)strftime(at, sizeof at, "%Y-%m-%d %H:%M:%S UTC", &tm);
    }
    (void)snprintf(out, size, "asked for by %s, %s", d->drain.by, at);
}

void drained_say(struct device *d, const char *what)
{
    char origin[PROTO_NAME_MAX + 64];
    write_origin(d, origin, sizeof origin);
    (void)snprintf(d->reason, sizeof d->reason, "%.300s; %s", what, origin);
}

void drained_by(struct device *d, const char *by)
{
    (void)snprintf(d->drain.by, sizeof d->drain.by, "%s", by);
    d->drain.since_s = (uint64_t)time(NULL);
}

/* ---- the hold file --------------------------------------------------------------------------- */

static const char *pin_of(const struct device *d)
{
    return device_uuid(d) != NULL ? d->pin : "";
}

static bool chosen(const struct front *f)
{
    return device_chosen(f->config.devices, f->config.backend_options);
}

/* While a device is drained, no process may ask the management library for instances of MIG. So the
 * next front opens the devices that this one knows. */
static void know_all(struct front *f)
{
    struct hold_known all[DEVICES_MAX];
    unsigned count = 0;
    bool numbers = chosen(f); /* these find the devices */
    for (unsigned i = 0; i < f->device_count; i++) {
        const struct device *d = f->device[i];
        numbers = numbers || d->chosen;
        if (device_uuid(d) != NULL) {
            all[count].number = d->number;
            (void)snprintf(all[count].backend, sizeof all[count].backend, "%s", d->backend);
            (void)snprintf(all[count].pin, sizeof all[count].pin, "%s", d->pin);
            count++;
        }
    }
    if (f->listed) { /* before, it does not know all */
        hold_file_know(f->holds, f->config.runtime_dir, all, numbers ? 0 : count);
    }
}

const struct hold_known *drained_known(struct front *f, unsigned at)
{
    return f->holds == NULL || chosen(f) ? NULL
                                         : hold_file_known(f->holds, f->config.runtime_dir, at);
}

void drained_note(struct front *f, const struct device *d)
{
    struct hold_drain entry = {.number = d->number,
                               .siblings = d->siblings,
                               .wish = d->drain.state,
                               .since_s = d->drain.since_s};
    (void)snprintf(entry.backend, sizeof entry.backend, "%s", d->backend);
    (void)snprintf(entry.pin, sizeof entry.pin, "%s", pin_of(d));
    (void)snprintf(entry.by, sizeof entry.by, "%s", d->drain.by);
    know_all(f);
    hold_file_drain(f->holds, f->config.runtime_dir, &entry);
}

void drained_forget(struct front *f, const struct device *d)
{
    know_all(f);
    hold_file_resume(f->holds, f->config.runtime_dir, d->backend, d->number, pin_of(d));
}

bool drained_recall(struct front *f, struct device *d)
{
    const struct hold_drain *entry =
        f->holds != NULL && d->owner == NULL && d->drain.state == DRAIN_NONE
            ? hold_file_drained(f->holds, f->config.runtime_dir, d->backend, d->number, pin_of(d))
            : NULL;
    if (entry == NULL) {
        return device_drains(d);
    }
    (void)snprintf(d->drain.by, sizeof d->drain.by, "%s", entry->by);
    d->drain.since_s = entry->since_s;
    d->siblings = d->siblings > 0 ? d->siblings : entry->siblings;
    if (d->pin[0] == '\0') {
        (void)snprintf(d->pin, sizeof d->pin, "%s", entry->pin);
    }
    device_set_drain(d, entry->wish == DRAIN_FINISHES ? DRAIN_FINISHES : DRAIN_HOLDS);
    drained_say(d, "it takes no new jobs");
    log_about(LOG_DEVICE_DRAIN, about_device(d), "device %u (%s %u) is still drained, %s", d->index,
              d->backend, d->number, strstr(d->reason, "asked for"));
    wake_at(f, front_now(f));
    return true;
}
