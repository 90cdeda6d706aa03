/* Chooses a table's renderer, and makes sheets of the daemon's tables. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "gpuctl/sheet/sheet.h"
#include "gpuctl/sheet/sheet_series.h"

/* Characters of a line on a terminal; 0: `out` is no terminal, or its width is not known. */
static size_t terminal_width(FILE *out)
{
    struct winsize size;
    int fd = fileno(out);
    return fd >= 0 && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static int write_alone(const struct sheet *sheet, const struct sheet_style *style, FILE *out,
                       struct ctl_err *e)
{
    switch (style->format) {
    case SHEET_JSON:
        return sheet_write_json(sheet, out, e);
    case SHEET_CSV: {
        bool again = style->series != NULL && !style->series->changed;
        if (style->series != NULL) {
            style->series->changed = false;
        }
        return sheet_write_csv(sheet, !again, out, e);
    }
    default:
        return sheet_write_columns(sheet,
                                   &(struct sheet_place){.wide = style->format == SHEET_WIDE,
                                                         .room = terminal_width(out),
                                                         .messages = stderr,
                                                         .series = style->series},
                                   out, e);
    }
}

static int write_in_series(const struct sheet *sheet, const struct sheet_style *style, FILE *out,
                           struct ctl_err *e)
{
    char time[32];
    struct sheet timed;
    if (!series_sheet(sheet, series_time(style->format, time, sizeof time), &timed)) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    series_begin(style->series, &timed);
    int rc = write_alone(&timed, style, out, e);
    sheet_finish(&timed);
    return rc;
}

int sheet_write(const struct sheet *sheet, const struct sheet_style *style, FILE *out,
                struct ctl_err *e)
{
    int rc = style->series != NULL ? write_in_series(sheet, style, out, e)
                                   : write_alone(sheet, style, out, e);
    if (rc == 0 && (fflush(out) != 0 || ferror(out))) {
        return ctl_err_errno(e, "writing the output");
    }
    return rc;
}

int sheet_write_rows(const struct sheet_rows *rows, const struct sheet_style *style, FILE *out,
                     struct ctl_err *e)
{
    uint32_t width = rows->field_count;
    struct sheet_column *columns = calloc((size_t)width + 1, sizeof *columns);
    struct sheet_cell *cells = calloc((size_t)width * rows->row_count + 1, sizeof *cells);
    int rc = columns != NULL && cells != NULL ? 0 : ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    for (uint32_t c = 0; rc == 0 && c < width; c++) {
        columns[c] = rows->fields[c].column;
        const char *at = (const char *)rows->rows + rows->fields[c].offset;
        for (uint32_t r = 0; r < rows->row_count; r++) {
            memcpy(&cells[(size_t)r * width + c], at + r * rows->row_size, sizeof *cells);
        }
    }
    if (rc == 0) {
        const struct sheet sheet = {.name = rows->name,
                                    .columns = columns,
                                    .column_count = width,
                                    .cells = cells,
                                    .row_count = rows->row_count};
        rc = sheet_write(&sheet, style, out, e);
    }
    free(columns);
    free(cells);
    return rc;
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

int sheet_of_table(const gpud_table *table, struct sheet *ret_sheet, struct ctl_err *e)
{
    uint32_t width = gpud_table_columns(table);
    struct sheet_column *columns = calloc(width > 0 ? width : 1, sizeof *columns);
    struct sheet_cell *cells = calloc((size_t)width * gpud_table_rows(table) + 1, sizeof *cells);
    if (columns == NULL || cells == NULL) {
        free(columns);
        free(cells);
        return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    for (uint32_t c = 0; c < width; c++) {
        columns[c] = (struct sheet_column){.name = gpud_table_column_name(table, c),
                                           .kind = gpud_table_column_kind(table, c),
                                           .wide = gpud_table_column_wide(table, c)};
    }
    fill_cells(table, columns, width, cells);
    *ret_sheet = (struct sheet){.name = gpud_table_name(table),
                                .columns = columns,
                                .column_count = width,
                                .cells = cells,
                                .row_count = gpud_table_rows(table)};
    return 0;
}

void sheet_finish(struct sheet *sheet)
{
    free((void *)(uintptr_t)sheet->columns);
    free((void *)(uintptr_t)sheet->cells);
    *sheet = (struct sheet){.name = NULL};
}

int sheet_write_table(const gpud_table *table, const struct sheet_style *style, FILE *out,
                      struct ctl_err *e)
{
    struct sheet sheet = {.name = NULL};
    int rc = sheet_of_table(table, &sheet, e);
    rc = rc == 0 ? sheet_write(&sheet, style, out, e) : rc;
    sheet_finish(&sheet);
    return rc;
}
