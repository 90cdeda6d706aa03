#include "gpuctl/top/source.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"

#define JOBS_MOST 1000u

static void copy(char *out, size_t size, const char *text)
{
    (void)snprintf(out, size, "%s", text);
}

static int query(struct ctl *ctl, const char *what, gpud_table **ret_table, struct ctl_err *e)
{
    gpud_query_options o = {.size = sizeof o, .limit = strcmp(what, "jobs") == 0 ? JOBS_MOST : 0};
    int rc = gpud_query_with(ctl->client, what, &o, ret_table);
    return rc == 0 ? 0 : ctl_err_lib(e, rc, "%s", what);
}

/* A growth per second; counters begin anew with the daemon. */
static double rate_of(uint64_t before, uint64_t now, double seconds)
{
    return now > before && seconds > 0 ? (double)(now - before) / seconds : 0;
}

static void take_status(struct source *s, const gpud_table *t, double seconds)
{
    uint64_t done = table_value_of(t, 0, "done");
    s->rate = s->asked_ns != 0 ? rate_of(s->done, done, seconds) : 0;
    s->done = done;
    copy(s->state, sizeof s->state, table_text_of(t, 0, "state"));
    copy(s->problem, sizeof s->problem, table_text_of(t, 0, "problem"));
    s->sessions = table_value_of(t, 0, "sessions");
    s->queued = table_value_of(t, 0, "queued");
    s->in_flight = table_value_of(t, 0, "in_flight");
    spark_add(&s->rates, s->rate);
    spark_add(&s->queue, (double)s->queued);
}

/* How busy a device was: by the driver, else by the time of the jobs that ended. A job that is
 * still running has none yet, so a device with nothing but such jobs is busy. */
static double busy_of(const struct source_device *d, const gpud_table *t, uint32_t row,
                      double seconds)
{
    int column = gpud_table_find(t, "gpu_busy");
    double part = rate_of(d->busy_ns, table_value_of(t, row, "busy"), seconds) / 1e9;
    if (column >= 0 && gpud_table_text(t, row, (uint32_t)column)[0] == '\0') {
        return (double)gpud_table_value(t, row, (uint32_t)column) / 1e6;
    }
    if (part == 0 && table_value_of(t, row, "in_flight") > 0) {
        part = 1;
    }
    return part < 1 ? part : 1;
}

static void take_device(struct source_device *d, const gpud_table *t, uint32_t row, double seconds)
{
    uint64_t id = table_value_of(t, row, "device");
    uint64_t busy_ns = table_value_of(t, row, "busy");
    if (d->id != id || d->name[0] == '\0') {
        *d = (struct source_device){.id = id, .busy_ns = busy_ns};
    }
    copy(d->name, sizeof d->name, table_text_of(t, row, "name"));
    copy(d->state, sizeof d->state, table_text_of(t, row, "state"));
    d->memory = table_value_of(t, row, "memory");
    d->used = table_value_of(t, row, "buffers");
    d->part = busy_of(d, t, row, seconds);
    spark_add(&d->busy, d->part);
    spark_add(&d->full, d->memory > 0 ? (double)d->used / (double)d->memory : 0);
    d->busy_ns = busy_ns;
}

static void take_devices(struct source *s, const gpud_table *t, double seconds)
{
    s->device_count = gpud_table_rows(t);
    for (uint32_t r = 0; r < s->device_count && r < SOURCE_DEVICES; r++) {
        take_device(&s->device[r], t, r, seconds);
    }
}

static int ask(struct source *s, struct ctl *ctl, const char *what, struct ctl_err *e)
{
    gpud_table *status = NULL, *devices = NULL, *table = NULL;
    struct sheet sheet = {.name = NULL};
    int rc = ctl_connect(ctl, e);
    rc = rc == 0 ? query(ctl, "status", &status, e) : rc;
    rc = rc == 0 ? query(ctl, "devices", &devices, e) : rc;
    rc = rc == 0 ? query(ctl, what, &table, e) : rc;
    rc = rc == 0 ? sheet_of_table(table, &sheet, e) : rc;
    if (rc == 0) {
        uint64_t now = clock_now_ns();
        double seconds = (double)(now - s->asked_ns) / 1e9;
        take_status(s, status, seconds);
        take_devices(s, devices, seconds);
        sheet_finish(&s->sheet);
        gpud_table_free(s->table);
        s->table = table;
        s->sheet = sheet;
        s->asked_ns = now;
    } else {
        gpud_table_free(table);
    }
    gpud_table_free(status);
    gpud_table_free(devices);
    return rc;
}

void source_ask(struct source *s, struct ctl *ctl, const char *table)
{
    struct ctl_err e = {0};
    s->trouble[0] = '\0';
    if (ask(s, ctl, table, &e) != 0) {
        e.text[strcspn(e.text, "\n")] = '\0';
        copy(s->trouble, sizeof s->trouble, e.text);
        ctl_disconnect(ctl);
    }
}

void source_finish(struct source *s)
{
    sheet_finish(&s->sheet);
    gpud_table_free(s->table);
    s->table = NULL;
}
