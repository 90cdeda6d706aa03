/* Tables: decoded once, all texts in one block. */
#include "client/src/api/table.h"

#include <stdlib.h>
#include <string.h>

#include "client/src/base/enter.h"
#include "client/src/base/error.h"
#include "client/src/session/call.h"

struct column {
    const char *name;
    int kind;
    bool wide;
};

struct cell {
    uint64_t value;
    const char *text;
};

struct gpud_table {
    const char *name;
    uint32_t columns;
    uint32_t rows;
    struct column *column; /* owned */
    struct cell *cell;     /* owned; rows * columns */
    char *texts;           /* owned */
    size_t used;           /* bytes of texts */
};

void gpud_table_free(gpud_table *table)
{
    if (table != NULL) {
        free(table->column);
        free(table->cell);
        free(table->texts);
        free(table);
    }
}

/* `texts` has room for every text of the message with its NUL. */
static const char *keep(gpud_table *t, struct bytes text)
{
    if (text.size == 0) {
        return "";
    }
    char *at = t->texts + t->used;
    memcpy(at, text.data, text.size);
    at[text.size] = '\0';
    t->used += text.size + 1;
    return at;
}

static void columns_fill(gpud_table *t, struct proto_list list)
{
    struct proto_column column;
    uint32_t i = 0;
    for (struct proto_iter it = proto_iter_of(list);
         i < t->columns && proto_list_next(&it, &schema_column, &column); i++) {
        t->column[i] = (struct column){
            .name = keep(t, column.name),
            .kind = (int)column.kind,
            .wide = column.wide != 0,
        };
    }
}

static void row_fill(gpud_table *t, struct proto_list cells, struct cell *row)
{
    struct proto_cell cell;
    uint32_t i = 0;
    for (struct proto_iter it = proto_iter_of(cells);
         i < t->columns && proto_list_next(&it, &schema_cell, &cell); i++) {
        row[i] = (struct cell){.value = cell.value, .text = keep(t, cell.text)};
    }
    for (; i < t->columns; i++) {
        row[i].text = "";
    }
}

static int table_make(const struct msg_table *reply, size_t message_size, gpud_table **ret_table,
                      struct err *e)
{
    gpud_table *t = calloc(1, sizeof *t);
    if (t == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a table");
    }
    t->columns = (uint32_t)reply->columns.count;
    t->rows = (uint32_t)reply->rows.count;
    t->column = calloc(t->columns + 1u, sizeof *t->column);
    t->cell = calloc((size_t)t->rows * t->columns + 1, sizeof *t->cell);
    /* each text takes a byte more in the message than its length, so the NULs have room */
    t->texts = malloc(message_size);
    if (t->column == NULL || t->cell == NULL || t->texts == NULL) {
        gpud_table_free(t);
        return err_set(e, ERR_NOMEM, "no memory for a table of %llu rows",
                       (unsigned long long)reply->rows.count);
    }
    t->name = keep(t, reply->name);
    columns_fill(t, reply->columns);
    struct proto_row row;
    uint32_t i = 0;
    for (struct proto_iter it = proto_iter_of(reply->rows);
         i < t->rows && proto_list_next(&it, &schema_row, &row); i++) {
        row_fill(t, row.cells, &t->cell[(size_t)i * t->columns]);
    }
    *ret_table = t;
    return 0;
}

int table_call(struct gpud_client *c, const struct schema *request, void *msg,
               gpud_table **ret_table, struct err *e)
{
    struct msg_table reply;
    struct message *m = NULL;
    int rc = client_call(c, request, msg, CALL_PLAIN, &schema_msg_table, &reply, &m, e);
    if (rc == 0) {
        rc = table_make(&reply, m->size, ret_table, e);
        message_unref(m);
    }
    return rc;
}

static int query(struct gpud_client *c, const char *what, const gpud_query_options *given,
                 gpud_table **ret_table, struct err *e)
{
    gpud_query_options o = {0};
    if (given != NULL && (given->size < sizeof given->size || given->size > 4096)) {
        return err_set(e, ERR_INVALID,
                       "gpud_query_options.size is %zu: set it to the struct's sizeof",
                       given->size);
    }
    if (given != NULL) {
        memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
    }
    if (what == NULL || ret_table == NULL) {
        return err_set(e, ERR_INVALID, "no name, or no pointer for the table");
    }
    bool chooses = o.state != NULL || o.session != 0 || o.tenant != NULL || o.limit != 0;
    if (chooses && c->session.minor < PROTO_MINOR_JOBS) {
        return err_set(e, ERR_UNSUPPORTED,
                       "the daemon is older than this library and lists all jobs only");
    }
    struct msg_query msg = {.what = bytes_str(what),
                            .filter = bytes_str(o.filter),
                            .state = bytes_str(o.state),
                            .session = o.session,
                            .tenant = bytes_str(o.tenant),
                            .limit = o.limit,
                            .job = o.job};
    return table_call(c, &schema_msg_query, &msg, ret_table, e);
}

int gpud_query_with(gpud_client *client, const char *what, const gpud_query_options *options,
                    gpud_table **ret_table)
{
    struct err e = ERR_INIT;
    int rc = client_enter(client, &e);
    if (rc == 0) {
        rc = query(client, what, options, ret_table, &e);
        if (rc != 0) {
            (void)err_wrap(&e, "query %.64s", what != NULL ? what : "");
        }
        client_leave(client);
    }
    return error_report(rc, &e);
}

int gpud_query(gpud_client *client, const char *what, const char *filter, gpud_table **ret_table)
{
    return gpud_query_with(
        client, what, &(gpud_query_options){.size = sizeof(gpud_query_options), .filter = filter},
        ret_table);
}

const char *gpud_table_name(const gpud_table *table)
{
    return table != NULL ? table->name : "";
}

uint32_t gpud_table_columns(const gpud_table *table)
{
    return table != NULL ? table->columns : 0;
}

uint32_t gpud_table_rows(const gpud_table *table)
{
    return table != NULL ? table->rows : 0;
}

static const struct column *column_at(const gpud_table *table, uint32_t column)
{
    static const struct column none = {.name = ""};
    return table != NULL && column < table->columns && table->column[column].name != NULL
               ? &table->column[column]
               : &none;
}

const char *gpud_table_column_name(const gpud_table *table, uint32_t column)
{
    return column_at(table, column)->name;
}

int gpud_table_column_kind(const gpud_table *table, uint32_t column)
{
    return column_at(table, column)->kind;
}

bool gpud_table_column_wide(const gpud_table *table, uint32_t column)
{
    return column_at(table, column)->wide;
}

static const struct cell *cell_at(const gpud_table *table, uint32_t row, uint32_t column)
{
    static const struct cell none = {.text = ""};
    return table != NULL && row < table->rows && column < table->columns
               ? &table->cell[(size_t)row * table->columns + column]
               : &none;
}

const char *gpud_table_text(const gpud_table *table, uint32_t row, uint32_t column)
{
    return cell_at(table, row, column)->text;
}

uint64_t gpud_table_value(const gpud_table *table, uint32_t row, uint32_t column)
{
    return cell_at(table, row, column)->value;
}

int gpud_table_find(const gpud_table *table, const char *column)
{
    for (uint32_t i = 0; column != NULL && i < gpud_table_columns(table); i++) {
        if (strcmp(gpud_table_column_name(table, i), column) == 0) {
            return (int)i;
        }
    }
    return -1;
}
