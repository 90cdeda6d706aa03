/*
 * Builds a TABLE reply: columns, then row after row. The first failure is kept until table_encode
 * reports it. Thread: any.
 *
 * The columns of a table are one list, from which its header and its rows follow:
 *
 *     #define SESSION_COLUMNS(COLUMN, WIDE)
 *         COLUMN(session, UINT, s->id)
 *         WIDE(kept, BYTES, s->kept_bytes)
 *
 * Each entry is a name, an enum proto_column_kind without its prefix, and the cell of a row: an
 * unsigned number, a string or a struct proto_cell. Users see WIDE columns when they ask for all.
 * Where a list is expanded, `t` is the table.
 */
#ifndef FRONT_VIEWS_TABLE_H
#define FRONT_VIEWS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/err.h"
#include "proto/messages.h"

struct table {
    const char *name;
    struct bytes filter; /* not owned; only rows with a text that contains it, empty: all rows */
    bool found;          /* a cell of the unfinished row contains the filter */
    struct capbuf columns;
    struct capbuf rows;
    struct capbuf cells; /* of the unfinished row */
    uint64_t column_count, row_count, cell_count;
    struct err error; /* the first failure */
};

void table_init(struct table *t, const char *name);
void table_finish(struct table *t);
void table_column(struct table *t, const char *name, enum proto_column_kind kind, bool wide);
/* The next cell of the unfinished row. Texts are cut to PROTO_TEXT_MAX. */
void table_text(struct table *t, const char *text);
void table_value(struct table *t, uint64_t value);
void table_put(struct table *t, struct proto_cell cell);
void table_row_end(struct table *t);
int table_encode(struct table *t, struct capbuf *out, struct err *e);

/* The number if it is known, else "-". */
struct proto_cell table_known(bool known, uint64_t value);

#define TABLE_HEADER(list) list(TABLE_COLUMN_, TABLE_WIDE_)
#define TABLE_ROW(list)    list(TABLE_CELL_, TABLE_CELL_) table_row_end(t)
#define TABLE_COUNT(list)  (0 list(TABLE_ONE_, TABLE_ONE_)) /* how many columns it has */

#define TABLE_COLUMN_(name, kind, value) table_column(t, #name, COLUMN_##kind, false);
#define TABLE_WIDE_(name, kind, value)   table_column(t, #name, COLUMN_##kind, true);
#define TABLE_ONE_(name, kind, value)    +1
#define TABLE_CELL_(name, kind, value)                                                             \
    _Generic((value),                                                                              \
        char *: table_text,                                                                        \
        const char *: table_text,                                                                  \
        struct proto_cell: table_put,                                                              \
        default: table_value)(t, value);

#endif
