#include <ctype.h>
#include <libsmartcols.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl/sheet/sheet.h"
#include "gpuctl/sheet/sheet_fit.h"
#include "gpuctl/sheet/sheet_series.h"

/* A cell, formatted for people. */
struct shown_cell {
    char number[64];  /* the formatted value */
    const char *text; /* `number`, or the sheet's own text */
};

/* A sheet without the columns that only the wide format shows. */
struct rendering {
    const struct sheet *sheet;
    uint32_t *column; /* owned: indices of the sheet's columns */
    uint32_t count;
    struct fit_column *fit;   /* owned: one for each */
    struct shown_cell *cells; /* owned: row by row */
    struct sheet_series *series;
};

static void head_of(const struct sheet_column *column, char head[GPUD_NAME])
{
    size_t n = 0;
    for (; column->name[n] != '\0' && n + 1 < GPUD_NAME; n++) {
        char letter = column->name[n];
        head[n] = letter == '_' ? ' ' : (char)toupper((unsigned char)letter);
    }
    head[n] = '\0';
}

static const struct sheet_column *column_at(const struct rendering *r, uint32_t c)
{
    return &r->sheet->columns[r->column[c]];
}

static void measure_cell(struct rendering *r, uint32_t row, uint32_t c)
{
    const struct sheet *sheet = r->sheet;
    const struct sheet_cell *cell = &sheet->cells[(size_t)row * sheet->column_count + r->column[c]];
    struct shown_cell *shown = &r->cells[(size_t)row * r->count + c];
    const char *text = cell->text != NULL ? cell->text
                                          : sheet_text(column_at(r, c)->kind, cell->value,
                                                       shown->number, sizeof shown->number);
    shown->text = text[0] != '\0' ? text : "-";
    struct fit_column *fit = &r->fit[c];
    size_t width = fit_width(shown->text);
    fit->width = width > fit->width ? width : fit->width;
    fit->empty = fit->empty && strcmp(shown->text, "-") == 0;
}

static void measure(struct rendering *r)
{
    for (uint32_t c = 0; c < r->count; c++) {
        char head[GPUD_NAME];
        head_of(column_at(r, c), head);
        r->fit[c] = (struct fit_column){.head = strlen(head),
                                        .width = strlen(head),
                                        .text = column_at(r, c)->kind == GPUD_COLUMN_TEXT,
                                        .empty = true};
        for (uint32_t row = 0; row < r->sheet->row_count; row++) {
            measure_cell(r, row, c);
        }
    }
}

static int rendering_init(struct rendering *r, const struct sheet *sheet, bool wide)
{
    size_t columns = sheet->column_count > 0 ? sheet->column_count : 1;
    *r = (struct rendering){.sheet = sheet,
                            .column = calloc(columns, sizeof *r->column),
                            .fit = calloc(columns, sizeof *r->fit),
                            .cells = calloc(columns * sheet->row_count + 1, sizeof *r->cells)};
    if (r->column == NULL || r->fit == NULL || r->cells == NULL) {
        return -1;
    }
    for (uint32_t c = 0; c < sheet->column_count; c++) {
        if (wide || !sheet->columns[c].wide) {
            r->column[r->count++] = c;
        }
    }
    measure(r);
    return 0;
}

static void rendering_finish(struct rendering *r)
{
    free(r->column);
    free(r->fit);
    free(r->cells);
}

/* Writes the heads of a table without rows, for which libsmartcols prints nothing. */
static void write_heads(const struct rendering *r, FILE *out)
{
    for (uint32_t c = 0; c < r->count; c++) {
        char head[GPUD_NAME];
        head_of(column_at(r, c), head);
        fprintf(out, "%s%s", c > 0 ? " " : "", head);
    }
    putc('\n', out);
}

static bool is_left(int kind)
{
    return kind == GPUD_COLUMN_TEXT || kind == GPUD_COLUMN_BOOL;
}

static int add_columns(struct libscols_table *table, const struct rendering *r)
{
    for (uint32_t c = 0; c < r->count; c++) {
        if (!r->fit[c].shown) {
            continue;
        }
        char head[GPUD_NAME];
        head_of(column_at(r, c), head);
        bool left = is_left(column_at(r, c)->kind);
        struct libscols_column *column =
            scols_table_new_column(table, head, 0, left ? SCOLS_FL_WRAP : SCOLS_FL_RIGHT);
        if (column == NULL ||
            (left && (scols_column_set_safechars(column, "\n") != 0 ||
                      scols_column_set_wrapfunc(column, scols_wrapnl_chunksize,
                                                scols_wrapnl_nextchunk, NULL) != 0))) {
            return -1;
        }
    }
    return 0;
}

/* A copy of the text without control characters: texts of other users must not control the
 * terminal. */
static char *printable(const char *text)
{
    char *copy = strdup(text);
    for (char *at = copy; at != NULL && *at != '\0'; at++) {
        unsigned char letter = (unsigned char)*at;
        *at = letter < ' ' || letter == 0x7f ? ' ' : *at;
    }
    return copy;
}

/* A copy of the text with blanks, so that it is as wide as its column: in a series each column
 * stays where it is. */
static char *padded(const char *text, size_t width, bool left)
{
    size_t blanks = width - fit_width(text);
    size_t length = strlen(text);
    char *copy = malloc(length + blanks + 1);
    if (copy != NULL) {
        memset(copy, ' ', length + blanks);
        memcpy(copy + (left ? 0 : blanks), text, length);
        copy[length + blanks] = '\0';
    }
    return copy;
}

/* A cell's text, wrapped to its column; owned by the caller. NULL: out of memory. */
static char *cell_text(const struct rendering *r, uint32_t row, uint32_t c)
{
    char *text = printable(r->cells[(size_t)row * r->count + c].text);
    bool fits = text != NULL && fit_width(text) <= r->fit[c].given;
    bool last = c + 1 == r->count && is_left(column_at(r, c)->kind);
    if (text == NULL || (fits && (r->series == NULL || last))) {
        return text;
    }
    size_t width = r->fit[c].given;
    char *lines =
        fits ? padded(text, width, is_left(column_at(r, c)->kind)) : fit_wrap(text, width);
    free(text);
    return lines;
}

static int add_row(struct libscols_table *table, const struct rendering *r, uint32_t row)
{
    struct libscols_line *line = scols_table_new_line(table, NULL);
    if (line == NULL) {
        return -1;
    }
    size_t at = 0;
    for (uint32_t c = 0; c < r->count; c++) {
        if (!r->fit[c].shown) {
            continue;
        }
        char *text = cell_text(r, row, c);
        if (text == NULL || scols_line_refer_data(line, at++, text) != 0) {
            free(text);
            return -1;
        }
    }
    return 0;
}

static int write_rows(const struct rendering *r, bool heads, FILE *out)
{
    struct libscols_table *table = scols_new_table();
    int rc = table != NULL ? 0 : -1;
    if (rc == 0) {
        scols_table_set_stream(table, out);
        /* libsmartcols would cut numbers to the terminal's width; the columns fit already */
        scols_table_set_termforce(table, SCOLS_TERMFORCE_NEVER);
        (void)scols_table_enable_noheadings(table, !heads);
        rc = add_columns(table, r);
    }
    for (uint32_t row = 0; rc == 0 && row < r->sheet->row_count; row++) {
        rc = add_row(table, r, row);
    }
    if (rc == 0) {
        rc = scols_print_table(table);
    }
    scols_unref_table(table);
    return rc;
}

/* Writes a message that names the columns with values that were left out. */
static void write_left_out(const struct rendering *r, FILE *messages)
{
    const char *before = "gpuctl: no room for ";
    for (uint32_t c = 0; c < r->count; c++) {
        if (!r->fit[c].shown && !r->fit[c].empty) {
            fprintf(messages, "%s%s", before, column_at(r, c)->name);
            before = ", ";
        }
    }
    if (before[0] == ',') {
        fprintf(messages, "; -o wide shows all columns\n");
    }
}

int sheet_write_columns(const struct sheet *sheet, const struct sheet_place *place, FILE *out,
                        struct ctl_err *e)
{
    struct rendering r;
    struct sheet_series *s = place->series;
    int rc = rendering_init(&r, sheet, place->wide);
    r.series = s;
    if (rc == 0 && s != NULL && sheet->row_count > 0) {
        series_widths(s, r.fit, r.count);
    }
    bool others = s == NULL || s->changed;
    bool heads = rc == 0 && (s == NULL || series_heads(s, sheet->row_count));
    if (heads && sheet->row_count == 0) {
        write_heads(&r, out);
    } else if (rc == 0 && sheet->row_count > 0) {
        fit_columns(r.fit, r.count, place->wide ? 0 : place->room);
        rc = write_rows(&r, heads, out);
        if (others) {
            write_left_out(&r, place->messages);
        }
    }
    rendering_finish(&r);
    return rc == 0 ? 0 : ctl_err_set(e, GPUD_ERR_NOMEM, "writing the table failed");
}
