#include "daemon/front/views/look_health.h"

#include <stdio.h>
#include <string.h>

#include "daemon/front/devices/monitor.h"
#include "daemon/front/model/front.h"

#define MILLI 1000u

/* Clocks are lower than they could be, by NVML's bits; being idle is no reason to worry. */
static const struct {
    uint64_t bit;
    const char *text;
} throttles[] = {{0x4, "power cap"}, {0x8, "hardware"},         {0x10, "sync boost"},
                 {0x20, "heat"},     {0x40, "heat (hardware)"}, {0x80, "power brake"},
                 {0x2, "set clocks"}};

void look_health_columns(struct table *t)
{
    static const struct {
        const char *name;
        enum proto_column_kind kind;
    } columns[] = {
        {"temperature", COLUMN_UINT}, {"power", COLUMN_UINT},       {"power_limit", COLUMN_UINT},
        {"gpu_busy", COLUMN_PPM},     {"gpu_memory", COLUMN_BYTES}, {"ecc_corrected", COLUMN_UINT},
        {"ecc_errors", COLUMN_UINT},  {"throttled", COLUMN_TEXT},   {"recovery", COLUMN_TEXT},
        {"processes", COLUMN_TEXT},   {"health", COLUMN_TEXT},      {"health_age", COLUMN_NS}};
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        table_column(t, columns[i].name, columns[i].kind, true);
    }
}

static const char *unknown_text(const struct health_value *v)
{
    switch (v->state) {
    case HEALTH_UNSUPPORTED:
        return "unsupported";
    case HEALTH_DENIED:
        return "not permitted";
    case HEALTH_FAILED:
        return "failed";
    default:
        return "-";
    }
}

static void number(struct table *t, const struct health_value *v, uint64_t unit)
{
    if (v->state == HEALTH_KNOWN) {
        table_value(t, v->value / unit);
    } else {
        table_text(t, unknown_text(v));
    }
}

static void throttled(struct table *t, const struct health_value *v)
{
    char text[128] = "";
    size_t used = 0;
    if (v->state != HEALTH_KNOWN) {
        table_text(t, unknown_text(v));
        return;
    }
    for (size_t i = 0; i < sizeof throttles / sizeof throttles[0] && used < sizeof text; i++) {
        if ((v->value & throttles[i].bit) != 0) {
            int n = snprintf(text + used, sizeof text - used, "%s%s", used > 0 ? ", " : "",
                             throttles[i].text);
            used += (size_t)n;
        }
    }
    table_text(t, used > 0 ? text : "no");
}

static void recovery(struct table *t, const struct health_value *v)
{
    if (v->state != HEALTH_KNOWN) {
        table_text(t, unknown_text(v));
    } else {
        table_text(t, monitor_recovery_text(v->value));
    }
}

static void processes(struct table *t, const struct health_device *h)
{
    const struct health_value *v = &h->value[HEALTH_processes];
    char text[512];
    int used = 0;
    if (v->state != HEALTH_KNOWN) {
        table_text(t, unknown_text(v));
        return;
    }
    used = snprintf(text, sizeof text, "%llu", (unsigned long long)v->value);
    for (unsigned i = 0; i < HEALTH_PROCESSES && h->process[i].pid != 0; i++) {
        const struct health_process *p = &h->process[i];
        char bytes[32] = "";
        if (p->bytes != HEALTH_UNKNOWN) {
            (void)snprintf(bytes, sizeof bytes, " %llu MiB", (unsigned long long)(p->bytes >> 20));
        }
        int n = snprintf(text + used, sizeof text - (size_t)used, "%s%llu%s", i == 0 ? ": " : ", ",
                         (unsigned long long)p->pid, bytes);
        if (n < 0 || (size_t)n >= sizeof text - (size_t)used) {
            text[used] = '\0';
            break;
        }
        used += n;
    }
    table_text(t, text);
}

/* What failed, and how the library calls it. */
static void remarks(struct table *t, const struct health_device *h)
{
    char text[256] = "";
    size_t used = 0;
    for (unsigned k = 0; k < HEALTH_KINDS && used < sizeof text; k++) {
        if (h->value[k].state == HEALTH_FAILED) {
            int n = snprintf(text + used, sizeof text - used, "%s%s: NVML error %d",
                             used > 0 ? "; " : "", health_name(k), (int)h->value[k].code);
            used += (size_t)n;
        }
    }
    table_text(t, used > 0 ? text : "known");
}

void look_health_note(struct front *f, const struct device *d, char *out, size_t size)
{
    struct health_device h;
    char why[256];
    uint64_t age = 0;
    const struct health_value *v = &h.value[HEALTH_recovery];
    if (monitor_read(f, d, &h, &age, why, sizeof why) && v->state == HEALTH_KNOWN &&
        v->value != HEALTH_RECOVERY_NONE) {
        (void)snprintf(out, size, "the driver asks: %s", monitor_recovery_text(v->value));
    } else if (d->recovery_unsure != HEALTH_RECOVERY_NONE) {
        (void)snprintf(out, size, "the driver asked: %s",
                       monitor_recovery_text(d->recovery_unsure));
    }
}

void look_health_cells(struct front *f, const struct device *d, struct table *t)
{
    struct health_device h;
    uint64_t age = 0;
    char why[256] = "";
    memset(&h, 0, sizeof h);
    bool known = monitor_read(f, d, &h, &age, why, sizeof why);
    number(t, &h.value[HEALTH_temperature], 1);
    number(t, &h.value[HEALTH_power], MILLI);
    number(t, &h.value[HEALTH_power_limit], MILLI);
    number(t, &h.value[HEALTH_busy], 1);
    number(t, &h.value[HEALTH_memory_used], 1);
    number(t, &h.value[HEALTH_ecc_corrected], 1);
    number(t, &h.value[HEALTH_ecc_uncorrected], 1);
    throttled(t, &h.value[HEALTH_throttling]);
    recovery(t, &h.value[HEALTH_recovery]);
    processes(t, &h);
    if (known) {
        remarks(t, &h);
        table_value(t, age);
    } else {
        table_printf(t, "%s%s", why[0] != '\0' ? "not known: " : "", why);
        table_text(t, "-");
    }
}
