#include "gpuctl/pool/json_out.h"

#include <inttypes.h>
#include <string.h>

#include "common/utf8.h"

static void quoted(const char *text, FILE *out)
{
    const uint8_t *at = (const uint8_t *)text;
    const uint8_t *end = at + strlen(text);
    putc('"', out);
    while (at < end) {
        size_t length = utf8_size(at, (size_t)(end - at));
        if (length == 0) {
            putc('?', out);
        } else if (*at < ' ' || *at == '<' || *at == 0x7f) {
            fprintf(out, "\\u%04x", *at);
        } else {
            fputs(*at == '"' || *at == '\\' ? "\\" : "", out);
            (void)fwrite(at, 1, length, out);
        }
        at += length > 0 ? length : 1;
    }
    putc('"', out);
}

static void begin(struct json_out *j, const char *name)
{
    fputs(j->comma ? "," : "", j->out);
    if (name != NULL) {
        quoted(name, j->out);
        putc(':', j->out);
    }
    j->comma = true;
}

void jout_open(struct json_out *j, const char *name, char bracket)
{
    begin(j, name);
    putc(bracket, j->out);
    j->comma = false;
}

void jout_close(struct json_out *j, char bracket)
{
    putc(bracket, j->out);
    j->comma = true;
}

void jout_line(struct json_out *j)
{
    fputs(j->comma ? ",\n" : "\n", j->out);
    j->comma = false;
}

void jout_uint(struct json_out *j, const char *name, uint64_t value)
{
    begin(j, name);
    fprintf(j->out, "%" PRIu64, value);
}

void jout_text(struct json_out *j, const char *name, const char *text)
{
    begin(j, name);
    quoted(text, j->out);
}

void jout_handle(struct json_out *j, const char *name, uint64_t handle)
{
    char text[24];
    snprintf(text, sizeof text, "0x%" PRIx64, handle);
    jout_text(j, name, text);
}

void jout_number(struct json_out *j, const char *name, const char *text)
{
    begin(j, name);
    fputs(text, j->out);
}

void jout_null(struct json_out *j, const char *name)
{
    begin(j, name);
    fputs("null", j->out);
}

void jout_row(struct json_out *j, const char *name, const gpud_table *table, uint32_t row)
{
    jout_open(j, name, '{');
    for (uint32_t c = 0; c < gpud_table_columns(table); c++) {
        const char *column = gpud_table_column_name(table, c);
        const char *text = gpud_table_text(table, row, c);
        int kind = gpud_table_column_kind(table, c);
        uint64_t value = gpud_table_value(table, row, c);
        if (kind == GPUD_COLUMN_TEXT) {
            jout_text(j, column, text);
        } else if (text[0] != '\0') {
            jout_null(j, column);
        } else if (kind == GPUD_COLUMN_INT) {
            begin(j, column);
            fprintf(j->out, "%" PRId64, (int64_t)value);
        } else if (kind == GPUD_COLUMN_BOOL) {
            begin(j, column);
            fputs(value != 0 ? "true" : "false", j->out);
        } else {
            jout_uint(j, column, value);
        }
    }
    jout_close(j, '}');
}
