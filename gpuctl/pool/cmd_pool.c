/* `gpuctl pool`: what the devices' memory is used for, in numbers and as a picture. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl/input/spec.h"
#include "gpuctl/pool/json_out.h"
#include "gpuctl/pool/pool_ask.h"

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

int pool_ask_option(int id, const char *value, struct shot_ask *ask, struct ctl_err *e)
{
    uint64_t number = 0;
    int rc = 0;
    if (id == POOL_DEVICE &&
        (rc = spec_number("--device", value, 0, DEVICE_MAX, &number, e)) == 0) {
        ask->device = GPUD_ON(number);
    } else if (id == POOL_TIMEOUT &&
               (rc = spec_number("--timeout", value, 1, TIMEOUT_MAX_MS, &number, e)) == 0) {
        ask->timeout_ns = number * 1000000u;
    }
    return rc;
}

int pool_notes_tell(const struct shot *shot, struct ctl_err *e)
{
    uint32_t told = 0;
    for (uint32_t i = 0; i < shot->device_count; i++) {
        const struct shot_device *d = &shot->devices[i];
        told += d->told;
        if (!d->told && shot->device_count > 1) {
            ctl_say("device %llu is not in it: %s", (unsigned long long)d->id, shot_note(shot, d));
        }
    }
    if (told > 0 || shot->device_count == 0) {
        return 0;
    }
    return shot->device_count > 1
               ? ctl_err_set(e, GPUD_ERR_DEVICE_LOST, "no device told of its pool")
               : ctl_err_set(e, GPUD_ERR_DEVICE_LOST, "device %llu did not tell of its pool: %s",
                             (unsigned long long)shot->devices[0].id,
                             shot_note(shot, &shot->devices[0]));
}

/* ---- stats -------------------------------------------------------------------------------- */

static void stats_json(const struct shot *shot)
{
    struct json_out j = {.out = stdout};
    jout_open(&j, NULL, '{');
    jout_open(&j, "pool", '[');
    for (uint32_t i = 0; i < shot->device_count; i++) {
        jout_line(&j);
        jout_row(&j, NULL, shot->pool, shot->devices[i].row);
    }
    jout_close(&j, ']');
    jout_open(&j, "meters", '[');
    for (uint32_t i = 0; i < shot->device_count; i++) {
        const gpud_table *meters = shot->devices[i].meters;
        for (uint32_t r = 0; r < gpud_table_rows(meters); r++) {
            jout_line(&j);
            jout_row(&j, NULL, meters, r);
        }
    }
    jout_close(&j, ']');
    jout_close(&j, '}');
    putchar('\n');
}

/* The meters of all devices as one table; classes only where there is room. */
static int meters_write(struct ctl *ctl, const struct shot *shot, struct ctl_err *e)
{
    uint32_t rows = 0;
    const gpud_table *first = NULL;
    for (uint32_t i = 0; i < shot->device_count; i++) {
        const gpud_table *t = shot->devices[i].meters;
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
    for (uint32_t i = 0; i < shot->device_count; i++) {
        const gpud_table *t = shot->devices[i].meters;
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

static int stats_write(struct ctl *ctl, const struct shot *shot, bool meters_only,
                       struct ctl_err *e)
{
    if (ctl->format == SHEET_JSON) {
        stats_json(shot);
        return 0;
    }
    int rc = meters_only ? 0 : sheet_write_table(shot->pool, ctl->format, stdout, e);
    if (rc == 0 && !meters_only && ctl->format != SHEET_CSV) {
        putchar('\n');
    }
    if (rc == 0 && (meters_only || ctl->format != SHEET_CSV)) {
        rc = meters_write(ctl, shot, e);
    }
    return rc;
}

int cmd_pool(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    struct shot_ask ask = {.detail = false};
    struct shot shot = {0};
    const char *value = NULL;
    bool meters_only = false;
    int rc = 0;
    int id;
    while (rc == 0 && (id = ctl_option(ctl, options, pool_option_list, &value, e)) != OPTION_END) {
        if (id == OPTION_WORD) {
            return ctl_err_usage(e, "unexpected word '%s'", value);
        }
        if (id == OPTION_BAD) {
            return e->code;
        }
        meters_only = meters_only || id == POOL_METERS_ONLY;
        rc = pool_ask_option(id, value, &ask, e);
    }
    rc = rc == 0 ? ctl_connect(ctl, e) : rc;
    rc = rc == 0 ? shot_take(ctl->client, &ask, &shot, e) : rc;
    rc = rc == 0 ? stats_write(ctl, &shot, meters_only, e) : rc;
    rc = rc == 0 ? pool_notes_tell(&shot, e) : rc;
    shot_finish(&shot);
    return rc;
}
