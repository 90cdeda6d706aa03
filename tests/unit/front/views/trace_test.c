/* The limits of recordings: each has memory of its own, and ends when its session reads no more. */
#include "daemon/front/views/trace.h"

#include <stdio.h>
#include <string.h>

#include "daemon/front/model/sessions.h"
#include "daemon/front/views/table_view.h"
#include "proto/codec.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static struct fake *k;

static struct session *session_of(struct tenant *t, uint64_t id)
{
    struct session_key key;
    memset(&key, 0, sizeof key);
    struct session *s = session_create(&key, t, id);
    ck_assert_ptr_nonnull(s);
    s->key.uid = 12345; /* no administrator */
    return s;
}

static void admitted(struct front *f, struct job *of)
{
    trace_admitted(f, of);
}

static void begin(void)
{
    k = fake_create();
    k->f.rights.admins.group = UINT32_MAX;
    k->session->key.uid = 12345;
    k->f.hooks.job_admitted = admitted;
}

static struct {
    int code;        /* of the table */
    uint64_t rows;   /* records */
    uint64_t device; /* of the last record */
    char name[80];   /* of the last record */
} last;

/* The cell of the last row in this column. */
static struct proto_cell cell_of(const struct table *t, const char *name)
{
    struct proto_column column;
    struct proto_row row;
    struct proto_cell cell;
    struct proto_iter rows = proto_iter_of(proto_list_of(&t->rows, t->row_count));
    struct proto_iter columns = proto_iter_of(proto_list_of(&t->columns, t->column_count));
    while (proto_list_next(&rows, &schema_row, &row)) {
    }
    struct proto_iter cells = proto_iter_of(row.cells);
    do {
        ck_assert(proto_list_next(&columns, &schema_column, &column));
        ck_assert(proto_list_next(&cells, &schema_cell, &cell));
    } while (!bytes_equal_str(column.name, name));
    return cell;
}

/* Asks for the table. */
static void reads(const struct session *s)
{
    const struct msg_query query = {.limit = 0};
    struct table_query q = {.f = &k->f, .s = s, .query = &query, .view = &view_trace};
    table_init(&q.table, "trace");
    view_trace.begin(&q);
    while (view_trace.next(&q)) {
    }
    last.code = q.table.error.code;
    last.rows = q.table.row_count - (last.code == 0);
    last.device = last.rows > 0 ? cell_of(&q.table, "device").value : UINT64_MAX;
    last.name[0] = '\0';
    if (last.rows > 0) {
        struct bytes name = cell_of(&q.table, "name").text;
        (void)snprintf(last.name, sizeof last.name, "%.*s", (int)name.size,
                       (const char *)name.data);
    }
    table_finish(&q.table);
}

static struct job *job(void)
{
    struct job *j = fake_job(k, 0);
    (void)fake_submit(k, j);
    return j;
}

static void ends(struct job *j)
{
    trace_ended(&k->f, j);
    fake_turn(k);
    fake_done(k, j, 0);
    fake_turn(k);
}

START_TEST(records_that_find_no_room_are_lost)
{
    begin();
    struct job *j = job();
    reads(k->session);
    ck_assert_int_eq(last.code, 0);
    ck_assert_uint_eq(last.rows, 0);
    for (unsigned i = 0; i < TRACE_RECORDS + 5; i++) {
        trace_ended(&k->f, j);
    }
    uint64_t all = 0;
    do { /* a table has so many at most */
        reads(k->session);
        ck_assert_uint_le(last.rows, TRACE_TABLE_ROWS);
        all += last.rows;
    } while (last.rows > 0);
    ck_assert_uint_eq(all, TRACE_RECORDS);
    trace_ended(&k->f, j); /* there is room again */
    reads(k->session);
    ck_assert_uint_eq(last.rows, 1);
    trace_session_ended(&k->f, k->session);
    ck_assert_ptr_null(k->f.traces);
    ends(j);
    fake_destroy(k);
}
END_TEST

/* Each session has its own, of its tenant's jobs; one that sees all has all. */
START_TEST(a_recording_has_what_its_session_may_see)
{
    begin();
    struct tenant *other = tenant_obtain(&k->f.tenants, 2000);
    struct session *s = session_of(other, 7);
    struct session *root = session_of(other, 8);
    root->key.uid = 0;
    root->client.local = true;
    struct job *j = job();
    reads(k->session);
    reads(s);
    reads(root);
    trace_ended(&k->f, j);
    reads(s);
    ck_assert_uint_eq(last.rows, 0);
    reads(root);
    ck_assert_uint_eq(last.rows, 1);
    reads(k->session);
    ck_assert_uint_eq(last.rows, 1);
    trace_finish_all(&k->f);
    ends(j);
    session_destroy(s);
    session_destroy(root);
    fake_destroy(k);
}
END_TEST

/* A job of a tenant's own worker is drawn on the device that clients know. */
START_TEST(a_record_names_the_device_of_a_domain)
{
    begin();
    struct job *j = job();
    struct device *base = j->device;
    struct device domain = {.index = DEVICES_MAX + 1, .base = base};
    reads(k->session);
    j->device = &domain;
    trace_ended(&k->f, j);
    j->device = base;
    reads(k->session);
    ck_assert_uint_eq(last.rows, 1);
    ck_assert_uint_eq(last.device, 0);
    trace_finish_all(&k->f);
    ends(j);
    fake_destroy(k);
}
END_TEST

/* The time of a step is one slice, and a launch with arrays of the host copies before and after.
 * A copy alone has its own name, also behind the launch. */
START_TEST(a_launch_with_host_arrays_has_its_kernels_name)
{
    begin();
    struct job *j = fake_job(k, 0);
    ck_assert_ptr_nonnull(work_add_step(&j->work, OP_WRITE, 0, NULL));
    fake_launches(k, j, "axpy_f32");
    ck_assert_ptr_nonnull(work_add_step(&j->work, OP_READ, 0, NULL));
    ck_assert_ptr_nonnull(work_add_step(&j->work, OP_READ, 1, NULL));
    (void)fake_submit(k, j);
    static const char *const names[] = {"axpy_f32", "read", "step 2"};
    for (unsigned i = 0; i < 3; i++) {
        struct timing timing = {.step = i, .begin_ns = 1, .end_ns = 2};
        j->timings = &timing;
        j->timing_count = 1;
        reads(k->session);
        trace_ended(&k->f, j);
        j->timings = NULL;
        j->timing_count = 0;
        reads(k->session);
        ck_assert_uint_eq(last.rows, 2);
        ck_assert_str_eq(last.name, names[i]);
    }
    trace_finish_all(&k->f);
    ends(j);
    fake_destroy(k);
}
END_TEST

START_TEST(recordings_are_few)
{
    struct session *s[2 * TRACES_MAX];
    begin();
    unsigned made = 0;
    for (unsigned i = 0; i < 2 * TRACES_MAX; i++) {
        s[i] = session_of(tenant_obtain(&k->f.tenants, 2000 + i / 4), 10 + i);
        reads(s[i]);
        made += last.code == 0;
        ck_assert(last.code == 0 || last.code == ERR_BUSY);
    }
    ck_assert_uint_eq(made, TRACES_MAX); /* two of each tenant */
    struct session *root = session_of(k->tenant, 9);
    root->key.uid = 0;
    root->client.local = true;
    reads(root); /* an administrator finds room */
    ck_assert_int_eq(last.code, 0);
    reads(k->session);
    ck_assert_int_eq(last.code, ERR_BUSY);
    fake_pass(TRACE_IDLE_NS - 1);
    reads(s[0]);
    fake_pass(1);
    k->f.wake_ns = NS_NEVER;
    trace_watch(&k->f, fake_now()); /* all but this one were not read */
    ck_assert_ptr_nonnull(k->f.traces);
    ck_assert_uint_lt(k->f.wake_ns, NS_NEVER);
    reads(k->session);
    ck_assert_int_eq(last.code, 0);
    trace_finish_all(&k->f);
    for (unsigned i = 0; i < 2 * TRACES_MAX; i++) {
        session_destroy(s[i]);
    }
    session_destroy(root);
    fake_destroy(k);
}
END_TEST

/* The jobs before it, of which it is known when it is admitted. */
START_TEST(what_a_job_waits_for)
{
    begin();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *first = fake_job(k, 0);
    struct job *second = fake_job(k, 0);
    fake_writes(first, b, 0, 64);
    fake_reads(second, b, 0, 64);
    (void)fake_submit(k, first);
    (void)fake_submit(k, second);
    reads(k->session);
    trace_admitted(&k->f, first);
    reads(k->session);
    ck_assert_uint_eq(last.rows, 0);
    trace_admitted(&k->f, second);
    reads(k->session);
    ck_assert_uint_eq(last.rows, 1);
    trace_finish_all(&k->f);
    ends(first);
    ends(second);
    fake_destroy(k);
}
END_TEST

SUITE_MAIN("trace", records_that_find_no_room_are_lost, a_recording_has_what_its_session_may_see,
           a_record_names_the_device_of_a_domain, a_launch_with_host_arrays_has_its_kernels_name,
           recordings_are_few, what_a_job_waits_for)
