#include "gpuctl/json_out.h"

#include <inttypes.h>
#include <string.h>

unsigned jout_character(const char *begin_of)
{
    const unsigned char *text = (const unsigned char *)begin_of;
    static const struct {
        unsigned char mask, head;
        unsigned char least; /* of the second byte: shorter forms and surrogates are none */
        unsigned char most;
    } forms[] = {{0xff, 0xe0, 0xa0, 0xbf}, {0xff, 0xed, 0x80, 0x9f}, {0xff, 0xf0, 0x90, 0xbf},
                 {0xff, 0xf4, 0x80, 0x8f}, {0xf0, 0xe0, 0x80, 0xbf}, {0xfc, 0xf0, 0x80, 0xbf},
                 {0xe0, 0xc0, 0x80, 0xbf}};
    if (text[0] < 0x80) {
        return 1;
    }
    if (text[0] < 0xc2) {
        return 0;
    }
    unsigned length = text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
    size_t form = 0;
    while (form < sizeof forms / sizeof forms[0] &&
           (text[0] & forms[form].mask) != forms[form].head) {
        form++;
    }
    if (form == sizeof forms / sizeof forms[0] || text[1] < forms[form].least ||
        text[1] > forms[form].most) {
        return 0;
    }
    for (unsigned i = 2; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return length;
}

static void quoted(const char *text, FILE *out)
{
    const unsigned char *at = (const unsigned char *)text;
    putc('"', out);
    while (*at != '\0') {
        unsigned length = jout_character((const char *)at);
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
