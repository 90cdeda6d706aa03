#include "daemon/front/devices/monitor.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/saturate.h"
#include "daemon/front/devices/discover.h"
#include "daemon/front/devices/energy.h"
#include "daemon/front/devices/hold_file.h"
#include "daemon/front/model/about.h"
#include "daemon/front/model/front.h"
#include "daemon/front/model/wake.h"

#define ID_BIT     (UINT64_C(1) << 62) /* ids of workers lie below, of compilers above */
#define HANG_NS    (5 * NS_PER_S)      /* a round takes some ms */
#define FIRST_NS   (60 * NS_PER_S)     /* in the first round the driver may start each GPU */
#define STALE_NS   (10 * NS_PER_S)     /* a round begins every 2 s */
#define UNSURE_NS  (120 * NS_PER_S)    /* how long a hold outlasts unknown health */
#define RESTART_NS (30 * NS_PER_S)
#define PAUSE_NS   (480 * NS_PER_S)
#define END_NS     (2 * NS_PER_S) /* a killed process that lives longer is stuck in the driver */

int monitor_create(struct monitor **ret_monitor, struct err *e)
{
    struct monitor *m = malloc(sizeof *m);
    if (m == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for gpud-monitor");
    }
    *m = (struct monitor){.page = MEMFD_NONE, .pause_ns = RESTART_NS};
    *ret_monitor = m;
    return 0;
}

void monitor_destroy(struct monitor *m)
{
    if (m != NULL) {
        memfd_finish(&m->page);
        free(m);
    }
}

static struct health_page *page_of(const struct monitor *m)
{
    return (struct health_page *)(void *)m->page.data;
}

/* May the management library know the device? */
static bool asks_about(const struct device *d)
{
    return device_uuid(d) != NULL;
}

static bool wanted(const struct front *f)
{
    for (unsigned i = 0; i < f->device_count; i++) {
        if (asks_about(f->device[i])) {
            return true;
        }
    }
    return false;
}

static void start(struct front *f, uint64_t now)
{
    struct monitor *m = f->monitor;
    struct err e = ERR_INIT;
    memfd_finish(&m->page);
    m->ended[0] = '\0';
    m->start_ns = ns_add(now, m->pause_ns);
    int rc = memfd_create_sealed("gpud-health", sizeof(struct health_page), &m->page, &e);
    if (rc == 0) {
        atomic_store(&page_of(m)->asking_ns, now);
        m->id = ID_BIT | ++m->next_id;
        rc = f->io.start_monitor(f->launcher, m->id, m->page.fd, &e);
    }
    if (rc != 0) {
        m->id = 0;
        (void)snprintf(m->ended, sizeof m->ended, "gpud-monitor: %s", e.text);
    }
}

/* The time limit that the monitor has exceeded, at one GPU or between rounds. 0: it does not
 * hang. */
static uint64_t hangs_ns(const struct monitor *m, uint64_t now)
{
    struct health_report report;
    uint64_t since = atomic_load(&page_of(m)->asking_ns);
    bool readable = health_read(page_of(m), &report);
    bool first = readable && report.taken_ns == 0;
    uint64_t patience = since == 0 ? STALE_NS : first ? FIRST_NS : HANG_NS;
    if (since == 0) {
        since = readable ? report.taken_ns : now;
    }
    return now > ns_add(since, patience) ? patience : 0;
}

static void end(struct front *f, uint64_t now)
{
    struct monitor *m = f->monitor;
    struct err e = ERR_INIT;
    m->killed_ns = now;
    if (f->io.kill(f->launcher, m->id, SIGKILL, &e) != 0) {
        log_say(LOG_MONITOR_STAYS, "gpud-monitor: %s", e.text);
    }
}

/* Would a monitor open the device? One of which only the number is known may have a UUID. */
static bool opens(const struct device *d)
{
    return asks_about(d) || (strcmp(d->backend, "cuda") == 0 && d->pin[0] == '\0');
}

/* The device for which no monitor may run; NULL: there is none. */
static const struct device *paused_for(const struct front *f)
{
    const struct device *found = NULL;
    for (unsigned i = 0; i < f->device_count && found == NULL; i++) {
        const struct device *d = f->device[i];
        found = device_drains(d) && d->state == DEVICE_RESTING && opens(d) ? d : NULL;
    }
    return found;
}

static void pause_for(struct front *f, const struct device *d, uint64_t now)
{
    struct monitor *m = f->monitor;
    (void)snprintf(m->ended, sizeof m->ended,
                   "device %u is drained, and the management library would open it",
                   device_shown(d));
    m->start_ns = 0;
    if (m->id != 0 && m->killed_ns == 0) {
        end(f, now);
    }
}

bool monitor_leaves(struct front *f, const struct device *d)
{
    if (f->monitor == NULL || !opens(d)) {
        return true;
    }
    pause_for(f, d, front_now(f));
    return f->monitor->id == 0;
}

/* Starts a monitor where none runs and a monitor may, and ends a monitor that hangs. */
static void tend(struct front *f, uint64_t now)
{
    struct monitor *m = f->monitor;
    const struct device *paused = paused_for(f);
    if (paused != NULL) {
        pause_for(f, paused, now);
        return;
    }
    if (m->id == 0) {
        if (now >= m->start_ns) {
            start(f, now);
        }
        return;
    }
    uint64_t patience = m->killed_ns == 0 ? hangs_ns(m, now) : 0;
    if (patience > 0) {
        (void)snprintf(m->ended, sizeof m->ended, "the driver did not answer within %u s",
                       (unsigned)(patience / NS_PER_S));
        log_say(LOG_MONITOR_ENDED, "gpud-monitor is ended: %s", m->ended);
        end(f, now);
    }
}

/* Reads the device from the page. */
static bool lookup(const struct monitor *m, const struct device *d, uint64_t now,
                   struct health_device *ret_health, uint64_t *ret_age_ns, char *why, size_t size)
{
    struct health_report report;
    if (!health_read(page_of(m), &report) || report.taken_ns == 0) {
        (void)snprintf(why, size, "the driver has not answered yet");
        return false;
    }
    if (report.error[0] != '\0') {
        (void)snprintf(why, size, "%s", report.error);
        return false;
    }
    if (now > ns_add(report.taken_ns, STALE_NS)) {
        (void)snprintf(why, size, "the last answer is %u s old",
                       (unsigned)((now - report.taken_ns) / NS_PER_S));
        return false;
    }
    const struct health_device *found = health_find(&report, device_uuid(d));
    if (found == NULL) {
        (void)snprintf(why, size, "the management library does not list this device");
        return false;
    }
    *ret_health = *found;
    *ret_age_ns = now > report.taken_ns ? now - report.taken_ns : 0;
    return true;
}

static bool read_at(const struct monitor *m, const struct device *d, uint64_t now,
                    struct health_device *ret_health, uint64_t *ret_age_ns, char *why,
                    size_t why_size)
{
    if (!asks_about(d)) {
        (void)snprintf(why, why_size, "%s", "");
        return false;
    }
    if (m->killed_ns != 0) {
        bool stuck = now > ns_add(m->killed_ns, END_NS);
        (void)snprintf(why, why_size, "%s%s", m->ended,
                       stuck ? "; gpud-monitor cannot be ended: the driver hangs" : "");
        return false;
    }
    if (m->ended[0] != '\0' || m->page.data == NULL) {
        (void)snprintf(why, why_size, "%s",
                       m->ended[0] != '\0' ? m->ended : "the driver was not asked yet");
        return false;
    }
    return lookup(m, d, now, ret_health, ret_age_ns, why, why_size);
}

bool monitor_read(struct front *f, const struct device *d, struct health_device *ret_health,
                  uint64_t *ret_age_ns, char *why, size_t why_size)
{
    return read_at(f->monitor, d, front_now(f), ret_health, ret_age_ns, why, why_size);
}

/* ---- devices that want recovery -------------------------------------------------------------- */

const char *monitor_recovery_text(uint64_t recovery)
{
    static const char *const texts[] = {
        [HEALTH_RECOVERY_NONE] = "none",
        [HEALTH_RECOVERY_RESET] = "reset the GPU",
        [HEALTH_RECOVERY_REBOOT] = "reboot the host",
        [HEALTH_RECOVERY_DRAIN_P2P] = "drain its peers",
        [HEALTH_RECOVERY_DRAIN_AND_RESET] = "drain and reset the GPU",
    };
    return recovery < sizeof texts / sizeof texts[0] ? texts[recovery] : "see nvidia-smi -q";
}

static void change(struct front *f, struct device *d, uint32_t recovery)
{
    d->recovery = recovery;
    hold_file_set(f->holds, f->config.runtime_dir, d->pin, recovery);
    f->hooks.device_changed(f, d);
    f->hooks.kick(f);
}

static void known(struct front *f, struct device *d, uint32_t recovery, uint64_t now)
{
    d->recovery_ns = now;
    d->recovery_unsure = HEALTH_RECOVERY_NONE;
    if (d->recovery == recovery) {
        return;
    }
    if (recovery != HEALTH_RECOVERY_NONE) {
        log_about(LOG_HEALTH_HELD, about_device(d),
                  "device %u gets no new jobs: the driver asks: %s", device_shown(d),
                  monitor_recovery_text(recovery));
    } else {
        log_about(LOG_HEALTH_FREE, about_device(d),
                  "device %u gets jobs again: the driver no longer asks for a recovery",
                  device_shown(d));
    }
    change(f, d, recovery);
}

/* A monitor that fails must not hold a device for ever. */
static void unknown(struct front *f, struct device *d, uint64_t now, const char *why)
{
    if (d->recovery == HEALTH_RECOVERY_NONE || now <= ns_add(d->recovery_ns, UNSURE_NS)) {
        return;
    }
    log_about(
        LOG_HEALTH_UNSURE, about_device(d),
        "device %u gets jobs again, though the driver last asked: %s: it has not answered for "
        "%u s: %s",
        device_shown(d), monitor_recovery_text(d->recovery), (unsigned)(UNSURE_NS / NS_PER_S), why);
    d->recovery_unsure = d->recovery;
    change(f, d, HEALTH_RECOVERY_NONE);
}

static void watch_device(struct front *f, struct device *d, uint64_t now)
{
    struct health_device health;
    const struct health_value *v = &health.value[HEALTH_recovery];
    uint64_t age = 0;
    char why[256] = "the management library does not report it";
    if (read_at(f->monitor, d, now, &health, &age, why, sizeof why)) {
        f->monitor->pause_ns = RESTART_NS;
        energy_report(f, d, &health, sat_sub(now, age));
        if (v->state == HEALTH_KNOWN) {
            known(f, d, v->value <= UINT32_MAX ? (uint32_t)v->value : UINT32_MAX, now);
        } else {
            unknown(f, d, now, why);
        }
    } else {
        unknown(f, d, now, why);
    }
    if (device_drains(d)) {
        return; /* its reason says how far that is */
    }
    const char *text = d->recovery != 0          ? "the driver asks: "
                       : d->recovery_unsure != 0 ? "not known whether the driver still asks: "
                                                 : "";
    uint32_t recovery = d->recovery != 0 ? d->recovery : d->recovery_unsure;
    (void)snprintf(d->reason, sizeof d->reason, "%s%s", text,
                   recovery != 0 ? monitor_recovery_text(recovery) : "");
}

static void recall(struct front *f, struct device *d)
{
    if (d->state != DEVICE_READY || d->recovery_ns != 0 || !asks_about(d)) {
        return;
    }
    d->recovery_ns = front_now(f);
    d->recovery = hold_file_find(f->holds, f->config.runtime_dir, d->pin);
    if (d->recovery != HEALTH_RECOVERY_NONE) {
        log_about(
            LOG_HEALTH_HELD, about_device(d),
            "device %u gets no new jobs until its driver answers: before the restart it asked: %s",
            device_shown(d), monitor_recovery_text(d->recovery));
    }
}

void monitor_wake(struct front *f, struct device *d)
{
    recall(f, d);
    if (wanted(f)) {
        wake_at(f, f->monitor->watch_ns);
    }
}

static void find_listed(struct front *f)
{
    struct monitor *m = f->monitor;
    struct health_report report;
    if (m->page.data != NULL && m->killed_ns == 0 && health_read(page_of(m), &report) &&
        report.taken_ns != 0 && report.error[0] == '\0') {
        discover_listed(f, &report);
    }
}

void monitor_watch(struct front *f, uint64_t now_ns, bool away)
{
    struct monitor *m = f->monitor;
    if (f->launcher == NULL || front_life_stops(f->life) || !wanted(f)) {
        return;
    }
    if (away) { /* the monitor may have stood still as well, and gets a second to report */
        m->watch_ns = ns_add(now_ns, NS_PER_S);
    }
    if (now_ns >= m->watch_ns) {
        m->watch_ns = ns_add(now_ns, NS_PER_S);
        tend(f, now_ns);
        for (unsigned i = 0; i < f->device_count; i++) {
            if (f->device[i]->state == DEVICE_READY) {
                watch_device(f, f->device[i], now_ns);
            }
        }
        find_listed(f);
    }
    wake_at(f, m->watch_ns);
}

bool monitor_started(struct front *f, uint64_t id, int code, const char *text)
{
    struct monitor *m = f->monitor;
    if (id != m->id || code == 0) {
        return (id & ID_BIT) != 0;
    }
    m->id = 0;
    (void)snprintf(m->ended, sizeof m->ended, "%s", text);
    return true;
}

bool monitor_ended(struct front *f, uint64_t id)
{
    struct monitor *m = f->monitor;
    if (id == m->id && id != 0) {
        struct health_report report;
        bool reported = health_read(page_of(m), &report) && report.error[0] != '\0';
        if (m->killed_ns == 0 && !reported) {
            (void)snprintf(m->ended, sizeof m->ended, "gpud-monitor ended unexpectedly");
            log_say(LOG_MONITOR_ENDED, "%s", m->ended);
        }
        m->id = 0;
        m->killed_ns = 0;
        if (paused_for(f) == NULL) {
            m->start_ns = ns_add(front_now(f), m->pause_ns);
            m->pause_ns = m->pause_ns < PAUSE_NS ? 2 * m->pause_ns : PAUSE_NS;
        }
        wake_at(f, front_now(f)); /* a device that is drained may wait for it */
    }
    return (id & ID_BIT) != 0;
}

void monitor_orphaned(struct front *f)
{
    f->monitor->id = 0;
    f->monitor->killed_ns = 0;
    f->monitor->start_ns = 0;
}
