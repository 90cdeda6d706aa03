#include "gpuctl/sheet/sheet.h"

#include <inttypes.h>
#include <string.h>

int sheet_format_from_name(const char *name)
{
    static const char *const names[] = {
        [SHEET_TABLE] = "table", [SHEET_WIDE] = "wide", [SHEET_JSON] = "json", [SHEET_CSV] = "csv"};
    for (int i = 0; i < (int)(sizeof names / sizeof names[0]); i++) {
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

static const char *scaled(uint64_t value, uint64_t step, const char *const *units, char *out,
                          size_t size)
{
    unsigned unit = 0;
    double shown = (double)value;
    while (shown >= (double)step && units[unit + 1] != NULL) {
        shown /= (double)step;
        unit++;
    }
    if (unit == 0) {
        snprintf(out, size, "%" PRIu64 " %s", value, units[0]);
    } else {
        snprintf(out, size, "%.*f %s", shown < 10 ? 2 : shown < 100 ? 1 : 0, shown, units[unit]);
    }
    return out;
}

static const char *duration(uint64_t ns, char *out, size_t size)
{
    static const char *const units[] = {"ns", "us", "ms", "s", NULL};
    uint64_t seconds = ns / 1000000000u;
    if (seconds < 600) {
        return scaled(ns, 1000, units, out, size);
    }
    if (seconds < 86400) {
        snprintf(out, size, "%" PRIu64 " h %02" PRIu64 " min", seconds / 3600, seconds / 60 % 60);
    } else {
        snprintf(out, size, "%" PRIu64 " d %02" PRIu64 " h", seconds / 86400, seconds / 3600 % 24);
    }
    return out;
}

const char *sheet_text(int kind, uint64_t value, char *out, size_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", NULL};
    switch (kind) {
    case GPUD_COLUMN_TEXT:
        out[0] = '\0';
        break;
    case GPUD_COLUMN_INT:
        snprintf(out, size, "%" PRId64, (int64_t)value);
        break;
    case GPUD_COLUMN_BYTES:
        return scaled(value, 1024, units, out, size);
    case GPUD_COLUMN_NS:
        return duration(value, out, size);
    case GPUD_COLUMN_PPM:
        snprintf(out, size, "%.1f %%", (double)value / 1e4);
        break;
    case GPUD_COLUMN_BOOL:
        snprintf(out, size, "%s", value != 0 ? "yes" : "no");
        break;
    default:
        snprintf(out, size, "%" PRIu64, value);
        break;
    }
    return out;
}

const char *table_text_of(const gpud_table *table, uint32_t row, const char *column)
{
    int at = gpud_table_find(table, column);
    return at >= 0 ? gpud_table_text(table, row, (uint32_t)at) : "";
}

uint64_t table_value_of(const gpud_table *table, uint32_t row, const char *column)
{
    int at = gpud_table_find(table, column);
    return at >= 0 ? gpud_table_value(table, row, (uint32_t)at) : 0;
}
