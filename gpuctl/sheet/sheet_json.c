#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#include "gpuctl/sheet/sheet.h"

/* Texts come from other users' labels: what is not UTF-8 must not stop the output. */
static json_t *text_value(const char *text)
{
    json_t *value = json_string(text);
    if (value != NULL) {
        return value;
    }
    char clean[1200];
    size_t used = 0;
    for (; *text != '\0' && used + 1 < sizeof clean; text++) {
        clean[used++] = (*text & 0x80) != 0 ? '?' : *text;
    }
    return json_stringn(clean, used);
}

static json_t *cell_value(int kind, const struct sheet_cell *cell)
{
    if (kind == GPUD_COLUMN_TEXT) {
        return text_value(cell->text != NULL ? cell->text : "");
    }
    if (cell->text != NULL) {
        return json_null();
    }
    if (kind == GPUD_COLUMN_BOOL) {
        return json_boolean(cell->value != 0);
    }
    if (kind != GPUD_COLUMN_INT && cell->value > INT64_MAX) {
        char digits[24]; /* jansson's integers end here, and a real would not be exact */
        (void)snprintf(digits, sizeof digits, "%" PRIu64, cell->value);
        return json_string(digits);
    }
    return json_integer((json_int_t)cell->value);
}

static json_t *row_object(const struct sheet *sheet, uint32_t row)
{
    json_t *object = json_object();
    const struct sheet_cell *cells = &sheet->cells[(size_t)row * sheet->column_count];
    for (uint32_t c = 0; c < sheet->column_count; c++) {
        json_t *value = cell_value(sheet->columns[c].kind, &cells[c]);
        if (json_object_set_new_nocheck(object, sheet->columns[c].name, value) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

int sheet_write_json(const struct sheet *sheet, FILE *out, struct ctl_err *e)
{
    json_t *rows = json_array();
    for (uint32_t r = 0; rows != NULL && r < sheet->row_count; r++) {
        if (json_array_append_new(rows, row_object(sheet, r)) != 0) {
            json_decref(rows);
            rows = NULL;
        }
    }
    json_t *root = json_object();
    char *text = NULL;
    if (rows != NULL && json_object_set_new_nocheck(root, sheet->name, rows) == 0) {
        text = json_dumps(root, JSON_INDENT(2));
    }
    json_decref(root);
    if (text == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    bool failed = fputs(text, out) == EOF || putc('\n', out) == EOF;
    int rc = failed ? ctl_err_errno(e, "writing the output") : 0;
    free(text);
    return rc;
}
