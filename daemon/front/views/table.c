#include "daemon/front/views/table.h"

#include <string.h>

#include "proto/codec.h"

#define TABLE_BYTES_MAX (8u * 1024u * 1024u)

void table_init(struct table *t, const char *name)
{
    *t = (struct table){.name = name, .error = ERR_INIT};
    capbuf_init(&t->columns, 65536);
    capbuf_init(&t->rows, TABLE_BYTES_MAX);
    capbuf_init(&t->cells, 262144);
}

void table_finish(struct table *t)
{
    capbuf_finish(&t->columns);
    capbuf_finish(&t->rows);
    capbuf_finish(&t->cells);
}

void table_column(struct table *t, const char *name, enum proto_column_kind kind, bool wide)
{
    struct proto_column c = {.name = bytes_str(name), .kind = kind, .wide = wide};
    if (proto_list_add(&schema_column, &c, &t->columns, &t->error) == 0) {
        t->column_count++;
    }
}

static bool holds(struct bytes text, struct bytes part)
{
    return part.size == 0 ||
           (text.size >= part.size && memmem(text.data, text.size, part.data, part.size) != NULL);
}

void table_put(struct table *t, struct proto_cell cell)
{
    if (cell.text.size > PROTO_TEXT_MAX) {
        cell.text.size = PROTO_TEXT_MAX;
    }
    t->found = t->found || holds(cell.text, t->filter);
    if (proto_list_add(&schema_cell, &cell, &t->cells, &t->error) == 0) {
        t->cell_count++;
    }
}

void table_text(struct table *t, const char *text)
{
    table_put(t, (struct proto_cell){.text = bytes_str(text)});
}

void table_value(struct table *t, uint64_t value)
{
    table_put(t, (struct proto_cell){.value = value});
}

struct proto_cell table_known(bool known, uint64_t value)
{
    return known ? (struct proto_cell){.value = value}
                 : (struct proto_cell){.text = bytes_str("-")};
}

void table_row_end(struct table *t)
{
    struct proto_row row = {.cells = proto_list_of(&t->cells, t->cell_count)};
    if (t->found && t->row_count < PROTO_ROWS_MAX &&
        proto_list_add(&schema_row, &row, &t->rows, &t->error) == 0) {
        t->row_count++;
    }
    capbuf_reset(&t->cells);
    t->cell_count = 0;
    t->found = false;
}

int table_encode(struct table *t, struct capbuf *out, struct err *e)
{
    if (t->error.code != 0) {
        if (e != NULL) {
            *e = t->error;
        }
        return t->error.code;
    }
    struct msg_table msg = {.name = bytes_str(t->name),
                            .columns = proto_list_of(&t->columns, t->column_count),
                            .rows = proto_list_of(&t->rows, t->row_count)};
    return proto_encode(&schema_msg_table, &msg, out, e);
}
