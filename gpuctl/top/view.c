#include "gpuctl/top/view.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct sheet_cell *cell_at(const struct view *v, uint32_t row, uint32_t column)
{
    return &v->sheet->cells[(size_t)row * v->sheet->column_count + column];
}

static const char *cell_text(const struct view *v, uint32_t row, uint32_t column, char *out,
                             size_t size)
{
    const struct sheet_cell *cell = cell_at(v, row, column);
    if (cell->text != NULL) {
        (void)snprintf(out, size, "%s", cell->text[0] != '\0' ? cell->text : "-");
    } else {
        (void)sheet_text(v->sheet->columns[column].kind, cell->value, out, size);
    }
    for (char *at = out; *at != '\0'; at++) {
        unsigned char letter = (unsigned char)*at;
        *at = letter < ' ' || letter == 0x7f ? ' ' : *at;
    }
    return out;
}

/* ---- columns and rows ---------------------------------------------------------------------- */

static bool is_also(const struct view *v, const char *name)
{
    for (const char *const *also = v->also; also != NULL && *also != NULL; also++) {
        if (strcmp(*also, name) == 0) {
            return true;
        }
    }
    return false;
}

static void choose_columns(struct view *v)
{
    v->column_count = 0;
    for (uint32_t c = 0; c < v->sheet->column_count && v->column_count < VIEW_COLUMNS; c++) {
        if (!v->sheet->columns[c].wide || is_also(v, v->sheet->columns[c].name)) {
            v->column[v->column_count++] = c;
        }
    }
    if (v->sort != VIEW_DAEMON && v->sort >= v->column_count) {
        v->sort = VIEW_DAEMON;
    }
}

static bool passes(const struct view *v, uint32_t row)
{
    char text[256];
    if (v->filter[0] == '\0') {
        return true;
    }
    for (uint32_t c = 0; c < v->column_count; c++) {
        if (strcasestr(cell_text(v, row, v->column[c], text, sizeof text), v->filter) != NULL) {
            return true;
        }
    }
    return false;
}

/* Unknown values come first. */
static int compare_cells(int kind, const struct sheet_cell *a, const struct sheet_cell *b)
{
    if (kind == GPUD_COLUMN_TEXT) {
        return strcmp(a->text, b->text);
    }
    if (a->text != NULL || b->text != NULL) {
        return (b->text != NULL) - (a->text != NULL);
    }
    if (kind == GPUD_COLUMN_INT) {
        return ((int64_t)a->value > (int64_t)b->value) - ((int64_t)a->value < (int64_t)b->value);
    }
    return (a->value > b->value) - (a->value < b->value);
}

/* Rows with equal cells keep the daemon's order, so that nothing jumps about. */
static int compare_rows(const void *a, const void *b, void *data)
{
    const struct view *v = data;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    uint32_t column = v->column[v->sort];
    int order =
        compare_cells(v->sheet->columns[column].kind, cell_at(v, x, column), cell_at(v, y, column));
    order = v->descending ? -order : order;
    return order != 0 ? order : (x > y) - (x < y);
}

/* Finds the selected row again; if it has gone, the place remains. */
static void find_selected(struct view *v)
{
    char text[sizeof v->selected];
    for (uint32_t i = 0; v->selected[0] != '\0' && i < v->count; i++) {
        if (strcmp(cell_text(v, v->order[i], 0, text, sizeof text), v->selected) == 0) {
            v->at = i;
            return;
        }
    }
    v->at = v->count == 0 ? 0 : v->at < v->count ? v->at : v->count - 1;
}

static void remember_selected(struct view *v)
{
    v->selected[0] = '\0';
    if (v->at < v->count) {
        (void)cell_text(v, v->order[v->at], 0, v->selected, sizeof v->selected);
    }
}

static void arrange(struct view *v)
{
    v->count = 0;
    for (uint32_t r = 0; v->sheet != NULL && r < v->sheet->row_count; r++) {
        if (passes(v, r)) {
            v->order[v->count++] = r;
        }
    }
    if (v->sort != VIEW_DAEMON && v->count > 0) {
        qsort_r(v->order, v->count, sizeof *v->order, compare_rows, v);
    }
    find_selected(v);
    remember_selected(v);
}

bool view_take(struct view *v, const struct sheet *sheet)
{
    v->sheet = NULL;
    v->count = 0;
    uint32_t *order = realloc(v->order, (sheet->row_count + 1u) * sizeof *order);
    if (order == NULL) {
        return false;
    }
    v->order = order;
    v->sheet = sheet;
    choose_columns(v);
    arrange(v);
    return true;
}

void view_finish(struct view *v)
{
    free(v->order);
    v->order = NULL;
    v->count = 0;
    v->sheet = NULL;
}

/* ---- what the user chooses ----------------------------------------------------------------- */

void view_sort(struct view *v, int step)
{
    /* VIEW_DAEMON lies between the last column and the first */
    uint32_t choices = v->column_count + 1;
    uint32_t now = v->sort == VIEW_DAEMON ? v->column_count : v->sort;
    now = (now + choices + (uint32_t)step) % choices;
    v->sort = now == v->column_count ? VIEW_DAEMON : now;
    v->descending = v->sort != VIEW_DAEMON && v->sheet != NULL &&
                    v->sheet->columns[v->column[v->sort]].kind != GPUD_COLUMN_TEXT;
    arrange(v);
}

void view_reverse(struct view *v)
{
    v->descending = !v->descending;
    arrange(v);
}

void view_filter(struct view *v, const char *text)
{
    (void)snprintf(v->filter, sizeof v->filter, "%s", text);
    arrange(v);
}

void view_move(struct view *v, int64_t step)
{
    int64_t at = (int64_t)v->at + step;
    int64_t last = v->count > 0 ? (int64_t)v->count - 1 : 0;
    v->at = (uint32_t)(at < 0 ? 0 : at > last ? last : at);
    remember_selected(v);
}

void view_scroll(struct view *v, uint32_t room)
{
    if (v->at < v->top) {
        v->top = v->at;
    }
    if (room > 0 && v->at >= v->top + room) {
        v->top = v->at - room + 1;
    }
    if (v->count <= room) {
        v->top = 0;
    } else if (v->top > v->count - room) {
        v->top = v->count - room;
    }
}

const char *view_text(const struct view *v, uint32_t index, uint32_t column, char *out, size_t size)
{
    return cell_text(v, v->order[index], v->column[column], out, size);
}

const char *view_head(const struct view *v, uint32_t column, char *out, size_t size)
{
    (void)snprintf(out, size, "%s", v->sheet->columns[v->column[column]].name);
    for (char *at = out; *at != '\0'; at++) {
        *at = *at == '_' ? ' ' : (char)toupper((unsigned char)*at);
    }
    return out;
}

const struct sheet_cell *view_selected(const struct view *v, const char *column)
{
    for (uint32_t c = 0; v->at < v->count && c < v->sheet->column_count; c++) {
        if (strcmp(v->sheet->columns[c].name, column) == 0) {
            return cell_at(v, v->order[v->at], c);
        }
    }
    return NULL;
}
