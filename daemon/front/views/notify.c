#include "daemon/front/views/notify.h"

#ifdef GPUD_SYSTEMD
#include <inttypes.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>

#include "common/clock.h"
#include "daemon/front/devices/discover.h"
#include "daemon/front/views/diagnosis.h"

void notify_ready(unsigned devices)
{
    (void)sd_notifyf(0, "READY=1\nSTATUS=%u devices", devices);
}

void notify_status(const struct front *f)
{
    char why[ERR_TEXT_MAX + 128];
    diagnosis_text(f, why, sizeof why);
    (void)sd_notifyf(0, "STATUS=%u of %u devices serve%s%s", discover_serving(f), f->device_count,
                     why[0] != '\0' ? "; " : "", why);
}

void notify_watchdog(void)
{
    (void)sd_notify(0, "WATCHDOG=1");
}

void notify_starting(uint64_t ns)
{
    (void)sd_notifyf(0, "EXTEND_TIMEOUT_USEC=%" PRIu64, ns / NS_PER_US);
}

bool notify_expected(void)
{
    const char *socket = getenv("NOTIFY_SOCKET");
    return socket != NULL && socket[0] != '\0';
}

uint64_t notify_watchdog_period(void)
{
    uint64_t us = 0;
    return sd_watchdog_enabled(0, &us) > 0 ? us * NS_PER_US / 4 : NS_NEVER;
}

void notify_reloading(void)
{
    (void)sd_notify(0, "RELOADING=1");
}

void notify_stopping(void)
{
    (void)sd_notify(0, "STOPPING=1");
}
#else
#include "common/clock.h"

void notify_ready(unsigned devices)
{
    (void)devices;
}

void notify_status(const struct front *f)
{
    (void)f;
}

void notify_watchdog(void)
{
}

void notify_starting(uint64_t ns)
{
    (void)ns;
}

bool notify_expected(void)
{
    return false;
}

uint64_t notify_watchdog_period(void)
{
    return NS_NEVER;
}

void notify_reloading(void)
{
}

void notify_stopping(void)
{
}
#endif
