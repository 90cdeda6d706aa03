/* The table `program`: who gets what of it, and what happens when its job ends meanwhile. */
#include <stdlib.h>
#include <string.h>

#include "daemon/front/model/request.h"
#include "daemon/front/model/sessions.h"
#include "daemon/front/views/table_view.h"
#include "proto/codec.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

#define LARGE (2u * 1024u * 1024u) /* bytes; the table takes one such array, not two */

static struct fake *k;
static struct job *j;
static struct capbuf args, steps;
static struct table_query q;
static struct msg_query query;
static uint8_t content[LARGE];

static void add_array(size_t bytes)
{
    const struct proto_arg a = {.tag = ARG_INLINE,
                                .access = ACCESS_IN,
                                .dtype = DTYPE_U8,
                                .ndim = 1,
                                .d0 = bytes,
                                .data = bytes_of(content, bytes)};
    ck_assert_int_eq(proto_list_add(&schema_arg, &a, &args, NULL), 0);
}

/* A job with one step of two arrays. */
static void begin(size_t first, size_t second)
{
    k = fake_create();
    k->f.rights.admins.group = UINT32_MAX;
    k->session->key.uid = 12345; /* no administrator */
    k->session->client.local = true;
    capbuf_init(&args, 8 * LARGE);
    capbuf_init(&steps, 8 * LARGE);
    add_array(first);
    add_array(second);
    const struct proto_step s = {.op = OP_WRITE, .args = proto_list_of(&args, 2)};
    ck_assert_int_eq(proto_list_add(&schema_step, &s, &steps, NULL), 0);
    j = fake_job(k, 0);
    j->request = calloc(1, sizeof *j->request);
    ck_assert_ptr_nonnull(j->request);
    j->request->kind = MSG_KIND_SUBMIT;
    j->request->msg.submit.steps = proto_list_of(&steps, 1);
    (void)fake_submit(k, j);
}

static void end(void)
{
    fake_turn(k);
    fake_done(k, j, 0);
    fake_turn(k);
    capbuf_finish(&args);
    capbuf_finish(&steps);
    fake_destroy(k);
}

static void ask(const struct session *s)
{
    query = (struct msg_query){.job = j->id};
    q = (struct table_query){.f = &k->f, .s = s, .query = &query, .view = &view_program};
    table_init(&q.table, "program");
    view_program.begin(&q);
}

static bool next(void)
{
    return view_program.next(&q);
}

/* The cell of a row in this column. */
static struct proto_cell cell_of(struct proto_row row, const char *name)
{
    struct proto_column column;
    struct proto_cell cell = {0};
    struct proto_iter columns =
        proto_iter_of(proto_list_of(&q.table.columns, q.table.column_count));
    struct proto_iter cells = proto_iter_of(row.cells);
    do {
        ck_assert_msg(proto_list_next(&columns, &schema_column, &column), "no column %s", name);
        ck_assert(proto_list_next(&cells, &schema_cell, &cell));
    } while (!bytes_equal_str(column.name, name));
    return cell;
}

/* How many rows there are with these texts in the columns `row` and `content`. */
static unsigned rows_with(const char *kind, const char *state)
{
    struct proto_row row;
    unsigned count = 0;
    struct proto_iter rows = proto_iter_of(proto_list_of(&q.table.rows, q.table.row_count));
    while (proto_list_next(&rows, &schema_row, &row)) {
        count += bytes_equal_str(cell_of(row, "row").text, kind) &&
                 bytes_equal_str(cell_of(row, "content").text, state);
    }
    return count;
}

static int reads(const struct session *s)
{
    ask(s);
    while (next()) {
    }
    return q.table.error.code;
}

static struct session *stranger(void)
{
    static uint64_t id = 100;
    struct session_key key;
    memset(&key, 0, sizeof key);
    struct session *s = session_create(&key, tenant_obtain(&k->f.tenants, 4711), id++);
    ck_assert_ptr_nonnull(s);
    s->key.uid = 4711;
    s->client.local = true;
    return s;
}

START_TEST(a_tenant_reads_its_own)
{
    begin(1000, 10);
    ck_assert_int_eq(reads(k->session), 0);
    ck_assert_uint_eq(rows_with("step", ""), 1);
    ck_assert_uint_eq(rows_with("arg", "follows"), 2);
    ck_assert_uint_eq(rows_with("content", ""), 3); /* 768 bytes, the rest, and the other array */
    table_finish(&q.table);
    end();
}
END_TEST

START_TEST(others_need_a_role)
{
    begin(1000, 10);
    struct session *s = stranger();
    ck_assert_int_eq(reads(s), ERR_NOT_FOUND);
    ck_assert_uint_eq(q.table.row_count, 0);
    table_finish(&q.table);
    k->f.rights.look_all = true;
    ck_assert_int_eq(reads(s), ERR_PERMISSION);
    ck_assert_uint_eq(q.table.row_count, 0);
    table_finish(&q.table);
    session_destroy(s);
    end();
}
END_TEST

/* Not the content: that is for administrators only. */
START_TEST(a_role_reads_the_steps)
{
    static const unsigned roles[] = {ROLE_SEE, ROLE_CANCEL};
    begin(1000, 10);
    struct session *s = stranger();
    for (unsigned i = 0; i < 2; i++) {
        s->tenant->limits.roles = roles[i];
        ck_assert_int_eq(reads(s), 0);
        ck_assert_uint_eq(rows_with("arg", "withheld"), 2);
        ck_assert_uint_eq(rows_with("content", ""), 0);
        table_finish(&q.table);
    }
    s->key.uid = 0;
    s->tenant->limits.roles = 0;
    ck_assert_int_eq(reads(s), 0);
    ck_assert_uint_eq(rows_with("arg", "follows"), 2);
    ck_assert_uint_eq(rows_with("content", ""), 3);
    table_finish(&q.table);
    session_destroy(s);
    end();
}
END_TEST

START_TEST(contents_are_bounded)
{
    begin(LARGE, LARGE);
    ck_assert_int_eq(reads(k->session), 0);
    ck_assert_uint_eq(rows_with("arg", "follows"), 1);
    ck_assert_uint_eq(rows_with("arg", "large"), 1);
    ck_assert_uint_eq(rows_with("content", ""), (LARGE + 767) / 768);
    table_finish(&q.table);
    end();
}
END_TEST

/* What the table reads next is freed with the job. */
START_TEST(a_job_ends_during_its_table)
{
    begin(LARGE, 10);
    ask(k->session);
    while (rows_with("content", "") < 2) {
        ck_assert(next());
    }
    fake_turn(k);
    fake_done(k, j, 0);
    fake_turn(k);
    ck_assert(!next());
    ck_assert_int_eq(q.table.error.code, ERR_STATE);
    table_finish(&q.table);
    capbuf_finish(&args);
    capbuf_finish(&steps);
    fake_destroy(k);
}
END_TEST

SUITE_MAIN("program", a_tenant_reads_its_own, others_need_a_role, a_role_reads_the_steps,
           contents_are_bounded, a_job_ends_during_its_table)
