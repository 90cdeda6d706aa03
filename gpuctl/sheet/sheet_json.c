#include <stdlib.h>

#include "gpuctl/sheet/json_value.h"
#include "gpuctl/sheet/sheet.h"

static json_t *row_object(const struct sheet *sheet, uint32_t row)
{
    json_t *object = json_object();
    const struct sheet_cell *cells = &sheet->cells[(size_t)row * sheet->column_count];
    for (uint32_t c = 0; c < sheet->column_count; c++) {
        json_t *value = json_of_cell(sheet->columns[c].kind, cells[c].value, cells[c].text);
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
