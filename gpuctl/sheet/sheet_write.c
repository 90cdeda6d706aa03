/* Chooses a table's renderer, and makes sheets of the daemon's tables. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "gpuctl/sheet/sheet.h"

/* Characters of a line on a terminal; 0: `out` is no terminal, or its width is not known. */
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

int sheet_write_rows(const struct sheet_rows *rows, enum sheet_format format, FILE *out,
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
        rc = sheet_write(&sheet, format, out, e);
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
