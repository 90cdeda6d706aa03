#include "gpuctl/sheet/sheet_series.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

bool series_sheet(const struct sheet *sheet, const char *time, struct sheet *ret_sheet)
{
    uint32_t width = sheet->column_count + 1;
    struct sheet_column *columns = calloc(width, sizeof *columns);
    struct sheet_cell *cells = calloc((size_t)width * sheet->row_count + 1, sizeof *cells);
    if (columns == NULL || cells == NULL) {
        free(columns);
        free(cells);
        return false;
    }
    columns[0] = (struct sheet_column){.name = "time", .kind = GPUD_COLUMN_TEXT};
    memcpy(columns + 1, sheet->columns, sheet->column_count * sizeof *columns);
    for (uint32_t r = 0; r < sheet->row_count; r++) {
        cells[(size_t)r * width].text = time;
        memcpy(&cells[(size_t)r * width + 1], &sheet->cells[(size_t)r * sheet->column_count],
               sheet->column_count * sizeof *cells);
    }
    *ret_sheet = (struct sheet){.name = sheet->name,
                                .columns = columns,
                                .column_count = width,
                                .cells = cells,
                                .row_count = sheet->row_count};
    return true;
}

const char *series_time(enum sheet_format format, char *out, size_t size)
{
    bool people = format == SHEET_TABLE || format == SHEET_WIDE;
    time_t now = time(NULL);
    struct tm parts;
    if ((people ? localtime_r(&now, &parts) : gmtime_r(&now, &parts)) == NULL ||
        strftime(out, size, people ? "%H:%M:%S" : "%Y-%m-%dT%H:%M:%SZ", &parts) == 0) {
        out[0] = '\0';
    }
    return out;
}

void series_begin(struct sheet_series *s, const struct sheet *sheet)
{
    if (strcmp(s->name, sheet->name) != 0 || s->column_count != sheet->column_count) {
        *s = (struct sheet_series){.column_count = sheet->column_count, .changed = true};
        (void)snprintf(s->name, sizeof s->name, "%s", sheet->name);
    }
}

void series_widths(struct sheet_series *s, struct fit_column *columns, uint32_t count)
{
    for (uint32_t c = 0; c < count && c < SERIES_COLUMNS; c++) {
        if (columns[c].width > s->width[c]) {
            s->changed = true;
            s->width[c] = columns[c].width;
        }
        columns[c].width = s->width[c];
    }
}

bool series_heads(struct sheet_series *s, uint32_t rows)
{
    bool due = s->changed || s->lines >= SERIES_LINES;
    s->lines = due ? rows : s->lines + rows;
    s->changed = false;
    return due;
}
