#include "daemon/front/views/diagnosis.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/descriptors.h"
#include "common/saturate.h"
#include "daemon/front/clients/listener.h"
#include "daemon/front/devices/discover.h"
#include "daemon/front/devices/draining.h"
#include "daemon/front/modules/compiler.h"
#include "daemon/front/views/certificate.h"
#include "daemon/front/workers/silence.h"

#define NOTE_BYTES 40
#define RENEW      "; put a new one there, then: gpuctl reload"

/* A device whose worker is being ended keeps its state until the end is reported. */
static void device_why(const struct device *d, char *out, size_t size)
{
    bool ending = d->state == DEVICE_READY && d->recovery == 0 && !device_drains(d);
    const char *why = ending ? d->ending : d->reason;
    (void)snprintf(out, size, "device %u is %s%s%s", device_shown(d),
                   ending ? "ending its worker" : device_state_name(d), why[0] != '\0' ? ": " : "",
                   why);
}

/* Absent devices that nobody asked for are usual. */
static bool is_missed(const struct device *d)
{
    return !device_serves(d) && (d->required || !device_absent(d));
}

static bool is_idle(const struct device *d)
{
    return !device_serves(d);
}

/* The first device of the kind; those that an operator drains come last, because they are known.
 * NULL: none. */
static const struct device *first_device(const struct front *f,
                                         bool (*kind)(const struct device *d))
{
    const struct device *drained = NULL;
    for (unsigned i = 0; i < f->device_count; i++) {
        const struct device *d = f->device[i];
        if (kind(d) && !device_drains(d)) {
            return d;
        }
        drained = drained == NULL && kind(d) ? d : drained;
    }
    return drained;
}

/* The reason of the first device that does not serve. */
static void first_why(const struct front *f, char *out, size_t size)
{
    const struct device *d = first_device(f, is_idle);
    if (d != NULL) {
        device_why(d, out, size);
    } else {
        (void)snprintf(out, size, "%s",
                       f->device_count > 0 ? "there are no other devices"
                       : f->listed         ? "no device was found"
                                           : "the search for devices has not finished");
    }
}

/* Of min_devices: drained devices do not count, as long as another device serves. */
static uint64_t needed(const struct front *f)
{
    uint64_t least = f->config.min_devices > 0 ? 1 : 0;
    uint64_t others = sat_sub(f->config.min_devices, draining_count(f));
    return others > least ? others : least;
}

static void too_few(const struct front *f, char *out, size_t size)
{
    char why[ERR_TEXT_MAX + 64];
    first_why(f, why, sizeof why);
    (void)snprintf(out, size, "%u of %" PRIu64 " required devices serve: %s", discover_serving(f),
                   needed(f), why);
}

/* Even with min_devices = 0 jobs need a device. */
static void none_serves(const struct front *f, char *out, size_t size)
{
    char why[ERR_TEXT_MAX + 64];
    first_why(f, why, sizeof why);
    (void)snprintf(out, size, "no device serves: %s", why);
}

static bool device_missing(const struct front *f, char *out, size_t size)
{
    const struct device *d = first_device(f, is_missed);
    if (d != NULL) {
        device_why(d, out, size);
    }
    return d != NULL;
}

static bool starved(const struct front *f, char *out, size_t size)
{
    const struct device *d;
    char why[SILENCE_TEXT];
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        if (silence_excused(d)) {
            silence_text(d, front_now(f), why, sizeof why);
            (void)snprintf(out, size, "device %u: its worker is kept, with %s", device_shown(d),
                           why);
            return true;
        }
    }
    return false;
}

static bool warned(const struct front *f, char *out, size_t size)
{
    if (starved(f, out, size)) {
        return true;
    }
    for (unsigned i = 0; i < f->device_count; i++) {
        const struct device *d = f->device[i];
        if (d->warning[0] != '\0' && device_serves(d)) {
            (void)snprintf(out, size, "device %u: %s", device_shown(d), d->warning);
            return true;
        }
    }
    return false;
}

static bool limits_refused(const struct front *f, char *out, size_t size)
{
    for (unsigned i = 0; i < f->device_count; i++) {
        const struct device *d = f->device[i];
        if (d->refused[0] != '\0' && device_serves(d)) {
            (void)snprintf(out, size, "device %u does not enforce all limits: %s", device_shown(d),
                           d->refused);
            return true;
        }
    }
    return false;
}

static bool descriptors_short(const struct front *f, char *out, size_t size)
{
    if (f->listener == NULL) {
        return false;
    }
    bool starved = listener_starved(f->listener);
    if (starved) {
        (void)snprintf(out, size,
                       "out of descriptors: new clients wait, sealing is refused; close "
                       "connections, or raise LimitNOFILE= of the unit");
    } else if (!descriptors_spare()) {
        (void)snprintf(out, size,
                       "few descriptors are left: sealing and new arenas are refused; free sealed "
                       "buffers, or raise LimitNOFILE= of the unit");
    }
    return out[0] != '\0';
}

static bool settings_bad(const struct front *f, char *out, size_t size)
{
    char why[ERR_TEXT_MAX];
    if (f->settings_bad[0] != '\0') {
        (void)snprintf(out, size,
                       "the settings files are invalid, so the last accepted settings apply: %s; "
                       "correct them, then: gpuctl reload",
                       f->settings_bad);
    } else if (f->files_bad[0] != '\0') {
        (void)snprintf(out, size,
                       "clients of other hosts cannot connect, or not all: %s; correct it, then: "
                       "gpuctl reload",
                       f->files_bad);
    } else if (certificate_expired(f, why, sizeof why)) {
        (void)snprintf(out, size, "%s" RENEW, why);
    } else if (f->sockets_bad[0] != '\0') {
        (void)snprintf(out, size,
                       "the socket of a tenant is not open: %s; correct it, then: gpuctl reload",
                       f->sockets_bad);
    } else if (f->metrics_bad[0] != '\0') {
        (void)snprintf(out, size, "metrics are not served: %s; correct it, then: gpuctl reload",
                       f->metrics_bad);
    }
    return out[0] != '\0';
}

bool diagnosis_serves(const struct front *f)
{
    return discover_serving(f) >= needed(f);
}

bool diagnosis_ready(const struct front *f)
{
    return diagnosis_serves(f) && !front_life_refuses_jobs(f->life);
}

void diagnosis_text(const struct front *f, char *out, size_t size)
{
    const struct config *c = &f->config;
    const struct err *cache = f->compiler != NULL ? compiler_cache_error(f->compiler) : NULL;
    out[0] = '\0';
    if (!diagnosis_serves(f)) {
        too_few(f, out, size);
    } else if (discover_serving(f) == 0 && !discover_opening(f)) {
        none_serves(f, out, size);
    } else if (front_life_refuses_jobs(f->life)) {
        (void)snprintf(out, size, "draining: no new jobs are taken%s",
                       f->life == FRONT_DRAINING ? ", until gpuctl resume" : "");
    } else if (settings_bad(f, out, size) || descriptors_short(f, out, size) ||
               device_missing(f, out, size) || limits_refused(f, out, size) ||
               warned(f, out, size)) {
        return;
    } else if (f->job_count >= c->queue_max) {
        (void)snprintf(out, size, "the queue is full: %u jobs are unfinished, queue_max = %" PRIu64,
                       f->job_count, c->queue_max);
    } else if (f->session_count >= c->sessions_max) {
        (void)snprintf(out, size, "no new clients: %u sessions are open, sessions_max = %" PRIu64,
                       f->session_count, c->sessions_max);
    } else if (cache != NULL) {
        (void)snprintf(out, size, "compiled kernels are not cached: %s", cache->text);
    }
}

/* Devices that are opening may bring more. */
static bool rules_exceed(const struct front *f, char *out, size_t size)
{
    uint64_t most = 0;
    for (unsigned i = 0; i < f->device_count; i++) {
        const struct device *d = f->device[i];
        uint64_t whole = device_serves(d) ? device_whole(d) : UINT64_MAX;
        most = whole > most ? whole : most;
    }
    return f->listed && !discover_opening(f) &&
           tenant_rules_exceed(&f->rules, f->device_count, most, out, size);
}

void diagnosis_warning(const struct front *f, char *out, size_t size)
{
    char why[ERR_TEXT_MAX];
    out[0] = '\0';
    if (certificate_expires(f, why, sizeof why)) {
        (void)snprintf(out, size, "%s" RENEW, why);
    } else if (rules_exceed(f, why, sizeof why)) {
        (void)snprintf(out, size, "%s; correct it, then: gpuctl reload", why);
    }
}

/* Cuts the text at a limit, with an ellipsis, between two characters of UTF-8. */
static void cut(const char *text, char *out, size_t size)
{
    size_t length = strlen(text);
    size_t room = size - 1 < NOTE_BYTES ? size - 1 : NOTE_BYTES;
    if (length <= room) {
        (void)snprintf(out, size, "%s", text);
        return;
    }
    length = room - strlen("…");
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80) {
        length--;
    }
    (void)snprintf(out, size, "%.*s…", (int)length, text);
}

void diagnosis_note(const struct device *d, uint64_t now_ns, char *out, size_t size)
{
    out[0] = '\0';
    if (silence_excused(d)) {
        silence_note(d, now_ns, out, size);
    } else if (!device_serves(d)) {
        bool ending = d->state == DEVICE_READY && d->recovery == 0 && !device_drains(d);
        cut(ending ? d->ending : d->reason, out, size);
    } else if (d->warning[0] != '\0') {
        cut(d->warning, out, size);
    } else if (d->fault_ns != 0) {
        (void)snprintf(out, size, "worker ended %.0f s ago", (double)(now_ns - d->fault_ns) / 1e9);
    }
}

void diagnosis_fault(const struct device *d, bool all, char *out, size_t size)
{
    bool doing = all && d->fault[0] != '\0';
    (void)snprintf(out, size, "%s%s%s", d->fault, doing ? "; " : "", doing ? d->fault_doing : "");
}
