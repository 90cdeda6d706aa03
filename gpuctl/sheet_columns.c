#include <ctype.h>
#include <libsmartcols.h>
#include <stdlib.h>

#include "gpuctl/sheet.h"

static bool visible(const struct sheet_column *column, bool wide)
{
    return wide || !column->wide;
}

static void head_of(const struct sheet_column *column, char head[GPUD_NAME])
{
    size_t n = 0;
    for (; column->name[n] != '\0' && n + 1 < GPUD_NAME; n++) {
        char letter = column->name[n];
        head[n] = letter == '_' ? ' ' : (char)toupper((unsigned char)letter);
    }
    head[n] = '\0';
}

/* libsmartcols prints nothing at all where there are no rows. */
static void write_heads(const struct sheet *sheet, bool wide, FILE *out)
{
    const char *between = "";
    for (uint32_t c = 0; c < sheet->column_count; c++) {
        char head[GPUD_NAME];
        if (visible(&sheet->columns[c], wide)) {
            head_of(&sheet->columns[c], head);
            fprintf(out, "%s%s", between, head);
            between = " ";
        }
    }
    putc('\n', out);
}

static int add_columns(struct libscols_table *table, const struct sheet *sheet, bool wide)
{
    for (uint32_t c = 0; c < sheet->column_count; c++) {
        const struct sheet_column *column = &sheet->columns[c];
        if (!visible(column, wide)) {
            continue;
        }
        char head[GPUD_NAME];
        head_of(column, head);
        bool right = column->kind != GPUD_COLUMN_TEXT && column->kind != GPUD_COLUMN_BOOL;
        if (scols_table_new_column(table, head, 0, right ? SCOLS_FL_RIGHT : 0) == NULL) {
            return -1;
        }
    }
    return 0;
}

/* Control characters of foreign texts must not reach the terminal. */
static char *printable(const char *text)
{
    size_t size = 1;
    for (const char *at = text; *at != '\0'; at++) {
        size++;
    }
    char *copy = malloc(size);
    for (size_t i = 0; copy != NULL && i < size; i++) {
        unsigned char letter = (unsigned char)text[i];
        copy[i] = letter != '\0' && (letter < ' ' || letter == 0x7f) ? ' ' : text[i];
    }
    return copy;
}

static int add_row(struct libscols_table *table, const struct sheet *sheet, uint32_t row, bool wide)
{
    struct libscols_line *line = scols_table_new_line(table, NULL);
    if (line == NULL) {
        return -1;
    }
    size_t at = 0;
    for (uint32_t c = 0; c < sheet->column_count; c++) {
        const struct sheet_column *column = &sheet->columns[c];
        const struct sheet_cell *cell = &sheet->cells[(size_t)row * sheet->column_count + c];
        if (!visible(column, wide)) {
            continue;
        }
        char buffer[64];
        const char *text = cell->text != NULL
                               ? cell->text
                               : sheet_text(column->kind, cell->value, buffer, sizeof buffer);
        char *copy = printable(text[0] != '\0' ? text : "-");
        if (copy == NULL || scols_line_refer_data(line, at, copy) != 0) {
            free(copy);
            return -1;
        }
        at++;
    }
    return 0;
}

int sheet_write_columns(const struct sheet *sheet, bool wide, FILE *out, struct ctl_err *e)
{
    struct libscols_table *table = scols_new_table();
    int rc = table != NULL ? 0 : -1;
    if (rc == 0) {
        scols_table_set_stream(table, out);
        scols_table_enable_nowrap(table, 1);
        rc = add_columns(table, sheet, wide);
    }
    for (uint32_t r = 0; rc == 0 && r < sheet->row_count; r++) {
        rc = add_row(table, sheet, r, wide);
    }
    if (rc == 0 && sheet->row_count > 0) {
        rc = scols_print_table(table);
    } else if (rc == 0) {
        write_heads(sheet, wide, out);
    }
    scols_unref_table(table);
    return rc == 0 ? 0 : ctl_err_set(e, GPUD_ERR_NOMEM, "writing the table failed");
}
