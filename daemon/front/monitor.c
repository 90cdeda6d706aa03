#include "daemon/front/monitor.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/front.h"

#define ID_BIT     (UINT64_C(1) << 62) /* ids of workers lie below, of compilers above */
#define HANG_NS    (5 * NS_PER_S)      /* a round of questions takes some ms */
#define RESTART_NS (30 * NS_PER_S)
#define END_NS     (2 * NS_PER_S) /* what is killed and there after that is stuck in the driver */

void monitor_init(struct monitor *m)
{
    *m = (struct monitor){.page = MEMFD_NONE};
}

void monitor_finish(struct monitor *m)
{
    memfd_finish(&m->page);
}

static struct health_page *page_of(const struct monitor *m)
{
    return (struct health_page *)(void *)m->page.data;
}

/* Devices that the management library may know. */
static bool asks_about(const struct device *d)
{
    return strncmp(d->pin, "uuid=", 5) == 0;
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
    struct monitor *m = &f->monitor;
    struct err e = ERR_INIT;
    memfd_finish(&m->page);
    m->ended[0] = '\0';
    m->start_ns = ns_add(now, RESTART_NS);
    int rc = memfd_create_sealed("gpud-health", sizeof(struct health_page), &m->page, &e);
    if (rc == 0) {
        atomic_store(&page_of(m)->asking_ns, now);
        m->id = ID_BIT | ++m->next_id;
        rc = launcher_monitor(f->launcher, m->id, m->page.fd, &e);
    }
    if (rc != 0) {
        m->id = 0;
        (void)snprintf(m->ended, sizeof m->ended, "gpud-monitor: %s", e.text);
    }
}

/* For how long it has not answered; 0: it is in time. */
static uint64_t hangs_ns(const struct monitor *m, uint64_t now)
{
    uint64_t since = atomic_load(&page_of(m)->asking_ns);
    return since != 0 && now > since && now - since > HANG_NS ? now - since : 0;
}

void monitor_tend(struct front *f)
{
    struct monitor *m = &f->monitor;
    struct err e = ERR_INIT;
    uint64_t now = clock_now_ns();
    if (f->launcher == NULL || f->stopping) {
        return;
    }
    if (m->id == 0) {
        if (now >= m->start_ns && wanted(f)) {
            start(f, now);
        }
        return;
    }
    if (m->killed_ns == 0 && hangs_ns(m, now) > 0) {
        m->killed_ns = now;
        (void)snprintf(m->ended, sizeof m->ended, "the driver did not answer within %u s",
                       (unsigned)(HANG_NS / NS_PER_S));
        log_warn("gpud-monitor is ended: %s", m->ended);
        if (launcher_kill(f->launcher, m->id, SIGKILL, &e) != 0) {
            log_error("gpud-monitor: %s", e.text);
        }
    }
}

/* What the page says of the device. */
static bool lookup(const struct monitor *m, const struct device *d, uint64_t now,
                   struct health_device *ret_health, uint64_t *ret_age_ns, char *why, size_t size)
{
    struct health_report report;
    if (!health_read(page_of(m), &report) || report.taken_ns == 0) {
        (void)snprintf(why, size, "it is being asked");
        return false;
    }
    if (report.error[0] != '\0') {
        (void)snprintf(why, size, "%s", report.error);
        return false;
    }
    const struct health_device *found = health_find(&report, d->pin + strlen("uuid="));
    if (found == NULL) {
        (void)snprintf(why, size, "the management library does not list this device");
        return false;
    }
    *ret_health = *found;
    *ret_age_ns = now > report.taken_ns ? now - report.taken_ns : 0;
    return true;
}

bool monitor_read(struct front *f, const struct device *d, struct health_device *ret_health,
                  uint64_t *ret_age_ns, char *why, size_t why_size)
{
    struct monitor *m = &f->monitor;
    uint64_t now = clock_now_ns();
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
                       m->ended[0] != '\0' ? m->ended : "it was not asked yet");
        return false;
    }
    return lookup(m, d, now, ret_health, ret_age_ns, why, why_size);
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

static void hold(struct front *f, struct device *d, uint64_t recovery)
{
    const char *text = monitor_recovery_text(recovery);
    bool held = recovery != HEALTH_RECOVERY_NONE;
    if (d->recovery == recovery) {
        return;
    }
    d->recovery = (uint32_t)recovery;
    if (held) {
        log_warn("device %u gets no new jobs: the driver asks: %s", d->index, text);
    } else {
        log_info("device %u gets jobs again: the driver asks for nothing more", d->index);
    }
    f->hooks.device_changed(f, d);
    f->hooks.kick(f);
}

void monitor_watch(struct front *f, uint64_t now_ns)
{
    struct monitor *m = &f->monitor;
    struct health_device health;
    uint64_t age = 0;
    char why[256];
    if (now_ns < m->watch_ns || m->page.data == NULL) {
        return;
    }
    m->watch_ns = ns_add(now_ns, NS_PER_S);
    for (unsigned i = 0; i < f->device_count; i++) {
        struct device *d = f->device[i];
        const struct health_value *v = &health.value[HEALTH_recovery];
        if (d->state == DEVICE_READY && monitor_read(f, d, &health, &age, why, sizeof why) &&
            v->state == HEALTH_KNOWN) {
            hold(f, d, v->value <= UINT32_MAX ? v->value : UINT32_MAX);
        }
        if (d->state == DEVICE_READY) {
            (void)snprintf(d->reason, sizeof d->reason, "%s%s",
                           d->recovery != 0 ? "the driver asks: " : "",
                           d->recovery != 0 ? monitor_recovery_text(d->recovery) : "");
        }
    }
}

bool monitor_started(struct front *f, uint64_t id, int code, const char *text)
{
    struct monitor *m = &f->monitor;
    if (id != m->id || code == 0) {
        return (id & ID_BIT) != 0;
    }
    m->id = 0;
    (void)snprintf(m->ended, sizeof m->ended, "%s", text);
    return true;
}

bool monitor_ended(struct front *f, uint64_t id)
{
    struct monitor *m = &f->monitor;
    if (id == m->id && id != 0) {
        struct health_report report;
        bool told = health_read(page_of(m), &report) && report.error[0] != '\0';
        if (m->killed_ns == 0 && !told) {
            (void)snprintf(m->ended, sizeof m->ended, "gpud-monitor ended unexpectedly");
            log_warn("%s", m->ended);
        }
        m->id = 0;
        m->killed_ns = 0;
        m->start_ns = ns_add(clock_now_ns(), RESTART_NS);
    }
    return (id & ID_BIT) != 0;
}

void monitor_orphaned(struct front *f)
{
    f->monitor.id = 0;
    f->monitor.killed_ns = 0;
    f->monitor.start_ns = 0;
}
