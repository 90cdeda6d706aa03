/*
 * A table in memory and its renderings. Commands fill a sheet from the daemon's tables or from
 * their own results; the renderers write it to a stream.
 */
#ifndef GPUCTL_SHEET_SHEET_H
#define GPUCTL_SHEET_SHEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <gpud/gpud.h>

#include "gpuctl/base/ctl_err.h"

enum sheet_format { SHEET_TABLE = 0, SHEET_WIDE, SHEET_JSON, SHEET_CSV };

struct sheet_column {
    const char *name; /* not owned */
    int kind;         /* enum gpud_column_kind */
    bool wide;
};

struct sheet_cell {
    uint64_t value;
    const char *text; /* not owned; of a text column: the text; of others: NULL, or a text in place
                         of an unknown value */
};

struct sheet {
    const char *name; /* not owned */
    const struct sheet_column *columns;
    uint32_t column_count;
    const struct sheet_cell *cells; /* row by row */
    uint32_t row_count;
};

/* A column, and the member of a row's struct that it shows. */
struct sheet_field {
    struct sheet_column column;
    size_t offset; /* of a struct sheet_cell in the row */
};

/* The field of one member of `row`, a struct type; the column has the member's name. The choice
 * of pointers is not evaluated; it makes a member of another type fail to compile. */
#define SHEET_FIELD(row, member, kind, wide)                                                       \
    {                                                                                              \
        {#member, kind, wide},                                                                     \
            offsetof(row, member) + 0 * sizeof(1 ? &((row *)0)->member : (struct sheet_cell *)0)   \
    }

/* Rows as an array of structs. */
struct sheet_rows {
    const char *name; /* not owned */
    const struct sheet_field *fields;
    uint32_t field_count;
    const void *rows; /* row_count structs of row_size bytes */
    size_t row_size;
    uint32_t row_count;
};
#define SHEET_ROWS(table_name, field_list, row_list, count)                                        \
    {                                                                                              \
        .name = (table_name), .fields = (field_list),                                              \
        .field_count = sizeof(field_list) / sizeof *(field_list), .rows = (row_list),              \
        .row_size = sizeof *(row_list), .row_count = (count)                                       \
    }

/* "table", "wide", "json", "csv"; -1 otherwise. */
int sheet_format_from_name(const char *name);

struct sheet_series;

struct sheet_style {
    enum sheet_format format;
    struct sheet_series *series; /* NULL: the sheet stands alone; see sheet_series.h */
};

/* Writes the sheet. table: aligned columns for people, heads in capitals, values with units; on a
 * terminal they fit its width, and standard error names the columns that had no room. json: an
 * object with one array of objects, whose name is the table's; plain numbers in base units (bytes,
 * ns), null for an unknown value. csv: RFC 4180, the same values. */
int sheet_write(const struct sheet *sheet, const struct sheet_style *style, FILE *out,
                struct ctl_err *e);

/* As sheet_write for structs. NOMEM. */
int sheet_write_rows(const struct sheet_rows *rows, const struct sheet_style *style, FILE *out,
                     struct ctl_err *e);

/* As sheet_write for a table of the daemon. */
int sheet_write_table(const gpud_table *table, const struct sheet_style *style, FILE *out,
                      struct ctl_err *e);

/* A sheet of a table of the daemon, whose texts it uses. Owned by the caller: sheet_finish. NOMEM.
 */
int sheet_of_table(const gpud_table *table, struct sheet *ret_sheet, struct ctl_err *e);
void sheet_finish(struct sheet *sheet); /* a zeroed sheet is allowed */

/* A cell by its column's name; "" or 0 if there is no such column or row. */
const char *table_text_of(const gpud_table *table, uint32_t row, const char *column);
uint64_t table_value_of(const gpud_table *table, uint32_t row, const char *column);

/* A value of a column's kind, formatted for people; always terminated. Returns out. */
const char *sheet_text(int kind, uint64_t value, char *out, size_t size);

/* The space for the table of sheet_write_columns. */
struct sheet_place {
    bool wide;      /* all columns, each on one line whatever its length */
    size_t room;    /* unless wide: characters of a line; 0: any number. See sheet_fit.h */
    FILE *messages; /* receives the names of the columns that had no room */
    struct sheet_series *series; /* see struct sheet_style */
};

/* The three renderings, for sheet_write. */
int sheet_write_columns(const struct sheet *sheet, const struct sheet_place *place, FILE *out,
                        struct ctl_err *e);
int sheet_write_json(const struct sheet *sheet, FILE *out, struct ctl_err *e);
int sheet_write_csv(const struct sheet *sheet, bool heads, FILE *out, struct ctl_err *e);

#endif
