#include <inttypes.h>
#include <string.h>

#include "gpuctl/sheet/sheet.h"

static void write_text(const char *text, FILE *out)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, out);
        return;
    }
    putc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"') {
            putc('"', out);
        }
        putc(*text, out);
    }
    putc('"', out);
}

static void write_cell(int kind, const struct sheet_cell *cell, FILE *out)
{
    if (kind == GPUD_COLUMN_TEXT) {
        write_text(cell->text != NULL ? cell->text : "", out);
    } else if (cell->text != NULL) {
        return; /* an unknown value is an empty field */
    } else if (kind == GPUD_COLUMN_INT) {
        fprintf(out, "%" PRId64, (int64_t)cell->value);
    } else if (kind == GPUD_COLUMN_BOOL) {
        fputs(cell->value != 0 ? "true" : "false", out);
    } else {
        fprintf(out, "%" PRIu64, cell->value);
    }
}

static void write_names(const struct sheet *sheet, FILE *out)
{
    for (uint32_t c = 0; c < sheet->column_count; c++) {
        fputs(c > 0 ? "," : "", out);
        write_text(sheet->columns[c].name, out);
    }
    fputs("\r\n", out);
}

int sheet_write_csv(const struct sheet *sheet, bool heads, FILE *out, struct ctl_err *e)
{
    (void)e;
    if (heads) {
        write_names(sheet, out);
    }
    for (uint32_t r = 0; r < sheet->row_count; r++) {
        for (uint32_t c = 0; c < sheet->column_count; c++) {
            fputs(c > 0 ? "," : "", out);
            write_cell(sheet->columns[c].kind, &sheet->cells[(size_t)r * sheet->column_count + c],
                       out);
        }
        fputs("\r\n", out);
    }
    return 0;
}
