#include "proto/health.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#define READ_TRIES 100u

const struct health_throttle health_throttles[HEALTH_THROTTLES] = {
    {0x4, "power cap"},        {0x8, "hardware"},     {0x10, "sync boost"}, {0x20, "heat"},
    {0x40, "heat (hardware)"}, {0x80, "power brake"}, {0x2, "set clocks"},
};

void health_write(struct health_page *page, const struct health_report *report)
{
    uint32_t sequence = atomic_load_explicit(&page->sequence, memory_order_relaxed) | 1;
    atomic_store_explicit(&page->sequence, sequence, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    memcpy(&page->report, report, sizeof page->report);
    atomic_store_explicit(&page->sequence, sequence + 1, memory_order_release);
}

static void make_sane(struct health_report *r)
{
    r->error[sizeof r->error - 1] = '\0';
    r->device_count = r->device_count < HEALTH_DEVICES ? r->device_count : HEALTH_DEVICES;
    for (uint32_t i = 0; i < r->device_count; i++) {
        r->device[i].uuid[HEALTH_UUID - 1] = '\0';
    }
}

bool health_read(struct health_page *page, struct health_report *ret_report)
{
    for (unsigned i = 0; i < READ_TRIES; i++) {
        uint32_t before = atomic_load_explicit(&page->sequence, memory_order_acquire);
        memcpy(ret_report, &page->report, sizeof *ret_report);
        atomic_thread_fence(memory_order_acquire);
        uint32_t after = atomic_load_explicit(&page->sequence, memory_order_relaxed);
        if (before == after && before % 2 == 0) {
            make_sane(ret_report);
            return true;
        }
    }
    return false;
}

static const char *plain(const char *uuid)
{
    bool prefixed = strncasecmp(uuid, "GPU-", 4) == 0 || strncasecmp(uuid, "MIG-", 4) == 0;
    return prefixed ? uuid + 4 : uuid;
}

const struct health_device *health_find(const struct health_report *report, const char *uuid)
{
    for (uint32_t i = 0; i < report->device_count; i++) {
        if (strcasecmp(plain(report->device[i].uuid), plain(uuid)) == 0) {
            return &report->device[i];
        }
    }
    return NULL;
}

const char *health_name(enum health_kind kind)
{
    static const char *const names[] = {
#define X(name) #name,
        HEALTH_VALUES(X)
#undef X
    };
    return kind < HEALTH_KINDS ? names[kind] : "";
}
