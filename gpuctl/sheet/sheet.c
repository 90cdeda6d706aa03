#include "gpuctl/sheet/sheet.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int sheet_format_from_name(const char *name)
{
    static const char *const names[] = {"table", "wide", "json", "csv"};
    for (int i = 0; i < 4; i++) {
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

/* Characters of a line on a terminal; 0: it is none, or does not tell. */
static size_t terminal_width(FILE *out)
{
    struct winsize size;
    int fd = fileno(out);
    return fd >= 0 && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

int sheet_write(const struct sheet *sheet, enum sheet_format format, FILE *out, struct ctl_err *e)
{
    int rc;
    switch (format) {
    case SHEET_JSON:
        rc = sheet_write_json(sheet, out, e);
        break;
    case SHEET_CSV:
        rc = sheet_write_csv(sheet, out, e);
        break;
    default:
        rc = sheet_write_columns(sheet,
                                 &(struct sheet_place){.wide = format == SHEET_WIDE,
                                                       .room = terminal_width(out),
                                                       .messages = stderr},
                                 out, e);
        break;
    }
    if (rc == 0 && (fflush(out) != 0 || ferror(out))) {
        return ctl_err_errno(e, "writing the output");
    }
    return rc;
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

static void fill_cells(const gpud_table *table, const struct sheet_column *columns, uint32_t width,
                       struct sheet_cell *cells)
{
    for (uint32_t r = 0; r < gpud_table_rows(table); r++) {
        for (uint32_t c = 0; c < width; c++) {
            const char *text = gpud_table_text(table, r, c);
            bool shown = columns[c].kind == GPUD_COLUMN_TEXT || text[0] != '\0';
            cells[(size_t)r * width + c] = (struct sheet_cell){
                .value = gpud_table_value(table, r, c), .text = shown ? text : NULL};
        }
    }
}

int sheet_write_table(const gpud_table *table, enum sheet_format format, FILE *out,
                      struct ctl_err *e)
{
    uint32_t width = gpud_table_columns(table);
    struct sheet_column *columns = calloc(width > 0 ? width : 1, sizeof *columns);
    struct sheet_cell *cells = calloc((size_t)width * gpud_table_rows(table) + 1, sizeof *cells);
    int rc;
    if (columns == NULL || cells == NULL) {
        rc = ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    } else {
        for (uint32_t c = 0; c < width; c++) {
            columns[c] = (struct sheet_column){.name = gpud_table_column_name(table, c),
                                               .kind = gpud_table_column_kind(table, c),
                                               .wide = gpud_table_column_wide(table, c)};
        }
        fill_cells(table, columns, width, cells);
        struct sheet sheet = {.name = gpud_table_name(table),
                              .columns = columns,
                              .column_count = width,
                              .cells = cells,
                              .row_count = gpud_table_rows(table)};
        rc = sheet_write(&sheet, format, out, e);
    }
    free(columns);
    free(cells);
    return rc;
}
