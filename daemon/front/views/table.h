/* Builds a TABLE reply: columns first, then row after row, cell after cell. Failures stick until
 * table_encode tells them. Thread: any. */
#ifndef FRONT_VIEWS_TABLE_H
#define FRONT_VIEWS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/err.h"
#include "proto/messages.h"

struct table {
    const char *name;
    struct bytes filter; /* not owned: only rows with a text that contains it; empty: all */
    bool found;          /* by the row being built */
    struct capbuf columns;
    struct capbuf rows;
    struct capbuf cells; /* of the row being built */
    uint64_t column_count, row_count, cell_count;
    struct err error;
};

void table_init(struct table *t, const char *name);
void table_finish(struct table *t);
void table_column(struct table *t, const char *name, enum proto_column_kind kind, bool wide);
void table_text(struct table *t, const char *text);
void table_bytes_text(struct table *t, struct bytes text);
void table_value(struct table *t, uint64_t value);
void table_printf(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void table_row_end(struct table *t); /* the cells since the last row become one */
int table_encode(struct table *t, struct capbuf *out, struct err *e);

#endif
