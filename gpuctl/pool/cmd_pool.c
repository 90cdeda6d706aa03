/* `gpuctl pool`: the uses of device memory, in numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl/input/spec.h"
#include "gpuctl/pool/pool_request.h"
#include "gpuctl/sheet/json_value.h"

#define DEVICE_MAX     (UINT32_MAX - 1u)
#define TIMEOUT_MAX_MS 30000u

enum pool_option { POOL_METERS_ONLY = POOL_OWN };

const struct option pool_option_list[] = {
    {"device", 0, true, POOL_DEVICE},
    {"timeout", 0, true, POOL_TIMEOUT},
    {"meters", 0, false, POOL_METERS_ONLY},
    {0},
};

/* ---- what both commands share ------------------------------------------------------------- */

int pool_request_option(int id, const char *value, struct snapshot_request *request,
                        struct ctl_err *e)
{
    uint64_t number = 0;
    int rc = 0;
    if (id == POOL_DEVICE &&
        (rc = spec_number("--device", value, 0, DEVICE_MAX, &number, e)) == 0) {
        request->device = GPUD_ON(number);
    } else if (id == POOL_TIMEOUT &&
               (rc = spec_number("--timeout", value, 1, TIMEOUT_MAX_MS, &number, e)) == 0) {
        request->timeout_ns = number * 1000000u;
    }
    return rc;
}

int pool_notes_show(const struct snapshot *snapshot, struct ctl_err *e)
{
    uint32_t answered = 0;
    for (uint32_t i = 0; i < snapshot->device_count; i++) {
        const struct snapshot_device *d = &snapshot->devices[i];
        answered += d->answered;
        if (!d->answered && snapshot->device_count > 1) {
            ctl_say("device %llu is not in it: %s", (unsigned long long)d->id,
                    snapshot_note(snapshot, d));
        }
    }
    if (answered > 0 || snapshot->device_count == 0) {
        return 0;
    }
    return snapshot->device_count > 1
               ? ctl_err_set(e, GPUD_ERR_DEVICE_LOST, "no device answered")
               : ctl_err_set(e, GPUD_ERR_DEVICE_LOST, "device %llu did not answer: %s",
                             (unsigned long long)snapshot->devices[0].id,
                             snapshot_note(snapshot, &snapshot->devices[0]));
}

/* ---- stats -------------------------------------------------------------------------------- */

static bool stats_json(const struct snapshot *snapshot)
{
    bool good = true;
    fputs("{\"pool\":[", stdout);
    for (uint32_t i = 0; good && i < snapshot->device_count; i++) {
        fputs(i > 0 ? ",\n" : "\n", stdout);
        good = json_put(json_of_row(snapshot->pool, snapshot->devices[i].row), false, stdout);
    }
    fputs("],\"meters\":[", stdout);
    const char *before = "\n";
    for (uint32_t i = 0; i < snapshot->device_count; i++) {
        const gpud_table *meters = snapshot->devices[i].meters;
        for (uint32_t r = 0; good && r < gpud_table_rows(meters); r++) {
            fputs(before, stdout);
            good = json_put(json_of_row(meters, r), false, stdout);
            before = ",\n";
        }
    }
    fputs("]}\n", stdout);
    return good;
}

/* Writes the meters of all devices as one table. The narrow format leaves out classes. */
static int meters_write(struct ctl *ctl, const struct snapshot *snapshot, struct ctl_err *e)
{
    uint32_t rows = 0;
    const gpud_table *first = NULL;
    for (uint32_t i = 0; i < snapshot->device_count; i++) {
        const gpud_table *t = snapshot->devices[i].meters;
        first = first == NULL ? t : first;
        rows += gpud_table_rows(t);
    }
    uint32_t width = gpud_table_columns(first);
    struct sheet_column *columns = calloc(width + 1u, sizeof *columns);
    struct sheet_cell *cells = calloc((size_t)rows * width + 1, sizeof *cells);
    if (columns == NULL || cells == NULL) {
        free(columns);
        free(cells);
        return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    for (uint32_t c = 0; c < width; c++) {
        columns[c] = (struct sheet_column){.name = gpud_table_column_name(first, c),
                                           .kind = gpud_table_column_kind(first, c)};
    }
    struct sheet sheet = {
        .name = "meters", .columns = columns, .column_count = width, .cells = cells};
    for (uint32_t i = 0; i < snapshot->device_count; i++) {
        const gpud_table *t = snapshot->devices[i].meters;
        for (uint32_t r = 0; r < gpud_table_rows(t); r++) {
            if (ctl->format == SHEET_TABLE && strcmp(table_text_of(t, r, "scope"), "class") == 0) {
                continue;
            }
            for (uint32_t c = 0; c < width; c++) {
                bool text = columns[c].kind == GPUD_COLUMN_TEXT;
                cells[(size_t)sheet.row_count * width + c] =
                    (struct sheet_cell){.value = gpud_table_value(t, r, c),
                                        .text = text ? gpud_table_text(t, r, c) : NULL};
            }
            sheet.row_count++;
        }
    }
    int rc = ctl_write(ctl, &sheet, e);
    free(columns);
    free(cells);
    return rc;
}

static int stats_write(struct ctl *ctl, const struct snapshot *snapshot, bool meters_only,
                       struct ctl_err *e)
{
    if (ctl->format == SHEET_JSON) {
        return stats_json(snapshot) ? 0 : ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    bool one = ctl->format == SHEET_CSV || ctl->watch_ns > 0; /* table */
    int rc = meters_only ? 0 : ctl_write_table(ctl, snapshot->pool, e);
    if (rc == 0 && !meters_only && !one) {
        putchar('\n');
    }
    if (rc == 0 && (meters_only || !one)) {
        rc = meters_write(ctl, snapshot, e);
    }
    return rc;
}

int cmd_pool(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    struct snapshot_request request = {.detail = false};
    struct snapshot snapshot = {0};
    const char *value = NULL;
    bool meters_only = false;
    int rc = 0;
    int id;
    while (rc == 0 &&
           (id = ctl_option_only(ctl, options, pool_option_list, &value, e)) != OPTION_END) {
        if (id == OPTION_BAD) {
            return e->code;
        }
        meters_only = meters_only || id == POOL_METERS_ONLY;
        rc = pool_request_option(id, value, &request, e);
    }
    ctl->answer_ns = request.timeout_ns;
    rc = rc == 0 ? ctl_connect(ctl, e) : rc;
    rc = rc == 0 ? snapshot_take(ctl->client, &request, &snapshot, e) : rc;
    rc = rc == 0 ? stats_write(ctl, &snapshot, meters_only, e) : rc;
    rc = rc == 0 ? pool_notes_show(&snapshot, e) : rc;
    snapshot_finish(&snapshot);
    return rc;
}
