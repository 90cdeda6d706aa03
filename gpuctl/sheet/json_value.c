#include "gpuctl/sheet/json_value.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "gpuctl/base/save.h"

json_t *json_of_text(const char *text)
{
    json_t *value = json_string(text);
    if (value != NULL) {
        return value;
    }
    char *mended = strdup(text);
    if (mended == NULL) {
        return NULL;
    }
    utf8_mend(mended, strlen(mended));
    value = json_string(mended);
    free(mended);
    return value;
}

json_t *json_of_uint(uint64_t value)
{
    return value <= INT64_MAX ? json_integer((json_int_t)value) : json_sprintf("%" PRIu64, value);
}

json_t *json_of_handle(uint64_t handle)
{
    return json_sprintf("0x%" PRIx64, handle);
}

json_t *json_of_cell(int kind, uint64_t value, const char *text)
{
    if (kind == GPUD_COLUMN_TEXT) {
        return json_of_text(text != NULL ? text : "");
    }
    if (text != NULL) {
        return json_null();
    }
    if (kind == GPUD_COLUMN_BOOL) {
        return json_boolean(value != 0);
    }
    return kind == GPUD_COLUMN_INT ? json_integer((json_int_t)value) : json_of_uint(value);
}

json_t *json_of_row(const gpud_table *table, uint32_t row)
{
    json_t *object = json_object();
    for (uint32_t c = 0; c < gpud_table_columns(table); c++) {
        int kind = gpud_table_column_kind(table, c);
        const char *text = gpud_table_text(table, row, c);
        bool unknown = text[0] != '\0'; /* in a column of numbers, a text replaces the value */
        json_t *value = json_of_cell(kind, gpud_table_value(table, row, c),
                                     unknown || kind == GPUD_COLUMN_TEXT ? text : NULL);
        if (json_object_set_new(object, gpud_table_column_name(table, c), value) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

/* Escapes '<', which occurs only inside JSON strings. */
static int write_escaped(const char *data, size_t size, void *out)
{
    for (const char *at = data; at < data + size; at++) {
        if ((*at == '<' ? fputs("\\u003c", out) : putc(*at, out)) == EOF) {
            return -1;
        }
    }
    return 0;
}

bool json_put(json_t *value, bool members, FILE *out)
{
    /* 15 digits: a decimal fraction is written as in its source, without its binary rounding */
    size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(15) | (members ? JSON_EMBED : 0);
    bool good = value != NULL && json_dump_callback(value, write_escaped, out, flags) == 0;
    json_decref(value);
    return good;
}

int json_save(const json_t *value, const char *file, struct ctl_err *e)
{
    struct save save = {0};
    char *text = json_dumps(value, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    if (text == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    int rc = file != NULL ? save_begin(file, &save, e) : save_begin_stdout(&save, e);
    if (rc == 0) {
        const struct save_part parts[] = {{text, strlen(text)}, {"\n", 1}};
        rc = save_commit(&save, parts, 2, e);
    }
    free(text);
    return rc;
}
