/* The front's nouns, each alone: spans, tenants, buffers, sessions, work, tables. */
#include <stdlib.h>
#include <string.h>

#include "daemon/front/model/buffer.h"
#include "daemon/front/model/early.h"
#include "daemon/front/model/job.h"
#include "daemon/front/model/op.h"
#include "daemon/front/model/request.h"
#include "daemon/front/model/session.h"
#include "daemon/front/model/session_events.h"
#include "daemon/front/model/sessions.h"
#include "daemon/front/model/spans.h"
#include "daemon/front/model/tenant.h"
#include "daemon/front/requests/sweep.h"
#include "daemon/front/views/table.h"
#include "daemon/front/workers/record_encode.h"
#include "proto/codec.h"
#include "tests/unit/common/suite.h"

/* ---- spans -------------------------------------------------------------------------------- */

START_TEST(spans_join_and_split)
{
    struct spans s = {0};
    ck_assert(spans_cover(&s, 7, 7));
    ck_assert(!spans_cover(&s, 0, 1));
    spans_add(&s, 10, 20);
    spans_add(&s, 30, 40);
    ck_assert_uint_eq(s.count, 2);
    ck_assert(!spans_cover(&s, 10, 40));
    spans_add(&s, 20, 30);
    ck_assert_uint_eq(s.count, 1);
    ck_assert(spans_cover(&s, 10, 40));
    spans_remove(&s, 15, 16);
    ck_assert_uint_eq(s.count, 2);
    ck_assert(!spans_cover(&s, 14, 17));
    ck_assert(spans_cover(&s, 16, 40));
    spans_remove(&s, 0, UINT64_MAX);
    ck_assert_uint_eq(s.count, 0);
}
END_TEST

/* Against one flag a byte: never defined where the flags say no, and exactly so while few are. */
START_TEST(spans_agree_with_flags)
{
    enum { SIZE = 64 };
    struct spans s = {0};
    bool flag[SIZE] = {false};
    srand(7);
    for (int round = 0; round < 5000; round++) {
        uint64_t begin = (uint64_t)rand() % SIZE;
        uint64_t end = begin + (uint64_t)rand() % 9;
        end = end < SIZE ? end : SIZE;
        bool add = rand() % 2 == 0;
        for (uint64_t i = begin; i < end; i++) {
            flag[i] = add;
        }
        if (add) {
            spans_add(&s, begin, end);
        } else {
            spans_remove(&s, begin, end);
        }
        ck_assert_uint_le(s.count, SPANS_MAX);
        for (uint64_t i = 0; i < SIZE; i++) {
            if (spans_cover(&s, i, i + 1) && !flag[i]) {
                ck_abort_msg("byte %d is called defined in round %d", (int)i, round);
            }
        }
    }
}
END_TEST

START_TEST(spans_forget_the_smallest)
{
    struct spans s = {0};
    for (uint64_t i = 0; i < SPANS_MAX; i++) {
        spans_add(&s, i * 100, i * 100 + (i == 3 ? 5 : 50));
    }
    spans_add(&s, 10000, 10004); /* smaller than all there are */
    ck_assert(!spans_cover(&s, 10000, 10004));
    spans_add(&s, 10000, 10010);
    ck_assert(spans_cover(&s, 10000, 10010));
    ck_assert(!spans_cover(&s, 300, 305));
    ck_assert(spans_cover(&s, 1500, 1550));
}
END_TEST

/* ---- tenants ------------------------------------------------------------------------------ */

START_TEST(tenants_are_found_again_and_strikes_count)
{
    struct tenant *table = NULL;
    struct tenant *a = tenant_obtain(&table, 1000);
    struct tenant *b = tenant_obtain(&table, 1001);
    ck_assert_ptr_nonnull(a);
    ck_assert_ptr_ne(a, b);
    ck_assert_ptr_eq(tenant_obtain(&table, 1000), a);
    ck_assert_str_eq(a->name, "uid:1000");
    struct hash bad = hash_of("bad", 3);
    struct hash good = hash_of("good", 4);
    for (unsigned i = 1; i <= STRIKES_MAX; i++) {
        ck_assert(!tenant_quarantined(a, bad));
        ck_assert_uint_eq(tenant_strike(a, bad), i);
    }
    ck_assert(tenant_quarantined(a, bad));
    ck_assert(!tenant_quarantined(a, good));
    ck_assert(!tenant_quarantined(b, bad));
    tenant_destroy_all(&table);
    ck_assert_ptr_null(table);
}
END_TEST

/* ---- buffers ------------------------------------------------------------------------------ */

START_TEST(buffers_are_found_by_their_tenant_only)
{
    struct idmap map;
    idmap_init(&map, 8, 5);
    struct tenant mine = {.key = 1, .secret = 77};
    struct tenant other = {.key = 2};
    struct buffer b = {.tenant = &mine, .host_fd = -1, .state = BUFFER_LIVE, .bytes = 16};
    b.handle = idmap_add(&map, &b);
    struct buffer *found = NULL;
    struct err e = ERR_INIT;
    ck_assert_int_eq(buffer_find(&map, b.handle, &mine, &found, &e), 0);
    ck_assert_ptr_eq(found, &b);
    found = NULL;
    ck_assert_int_eq(buffer_find(&map, b.handle, &other, &found, &e), ERR_BAD_HANDLE);
    ck_assert_int_eq(buffer_find(&map, 0, &mine, &found, &e), ERR_BAD_HANDLE);
    ck_assert_int_eq(buffer_find(&map, UINT64_MAX, &mine, &found, &e), ERR_BAD_HANDLE);
    ck_assert_ptr_null(buffer_named(&mine, ""));
    buffer_rename(&b, "field");
    ck_assert_ptr_eq(buffer_named(&mine, "field"), &b);
    ck_assert_ptr_null(buffer_named(&other, "field"));
    buffer_rename(&b, "plane");
    ck_assert_ptr_null(buffer_named(&mine, "field"));
    ck_assert_ptr_eq(buffer_named(&mine, "plane"), &b);
    buffer_rename(&b, "");
    ck_assert_ptr_null(buffer_named(&mine, "plane"));
    ck_assert_ptr_null(mine.published);
    (void)idmap_remove(&map, b.handle);
    ck_assert_int_eq(buffer_find(&map, b.handle, &mine, &found, &e), ERR_STALE_HANDLE);
    ck_assert_ptr_null(found);
    idmap_finish(&map);
}
END_TEST

START_TEST(buffer_states_have_names_and_wire_values)
{
    struct buffer b = {.state = BUFFER_LIVE, .bytes = 8, .host_fd = -1};
    ck_assert_str_eq(buffer_state_name(&b), "undefined");
    ck_assert_uint_eq(buffer_wire_state(&b), 2);
    spans_add(&b.defined, 0, 8);
    ck_assert_str_eq(buffer_state_name(&b), "defined");
    ck_assert_uint_eq(buffer_wire_state(&b), 1);
    b.sealed = true;
    ck_assert_str_eq(buffer_state_name(&b), "sealed");
    ck_assert_uint_eq(buffer_wire_state(&b), 3);
    buffer_set_state(&b, BUFFER_RESTORING);
    ck_assert_str_eq(buffer_state_name(&b), "restoring");
    ck_assert_uint_eq(buffer_wire_state(&b), 3);
    buffer_set_state(&b, BUFFER_LOST);
    ck_assert_str_eq(buffer_state_name(&b), "lost");
    ck_assert_uint_eq(buffer_wire_state(&b), 4);
    buffer_destroy(NULL);
}
END_TEST

/* ---- sessions ----------------------------------------------------------------------------- */

static struct session *session_new(void)
{
    static struct tenant tenant = {.key = 2, .name = "uid:1"};
    struct session_key key;
    memset(&key, 0, sizeof key);
    struct session *s = session_create(&key, &tenant, 1);
    ck_assert_ptr_nonnull(s);
    return s;
}

START_TEST(answers_are_kept_until_acknowledged)
{
    struct session *s = session_new();
    for (uint64_t seq = 1; seq <= 3; seq++) {
        ck_assert_ptr_nonnull(op_create(s, seq, NULL));
    }
    s->order.expect = 4;
    ck_assert(op_answer(op_find(s, 1), bytes_str("one")));
    ck_assert(op_answer(op_find(s, 3), bytes_str("three")));
    ck_assert_uint_eq(s->ops.kept_bytes, 8);
    static struct front f;
    sweep_ack(&f, s, 4); /* not even asked yet */
    ck_assert_uint_eq(s->ops.count, 3);
    ck_assert_uint_eq(s->order.acked, 0);
    sweep_ack(&f, s, 2); /* 2 is not answered: it stays */
    ck_assert_uint_eq(s->ops.count, 2);
    ck_assert_ptr_null(op_find(s, 1));
    ck_assert_ptr_nonnull(op_find(s, 2));
    ck_assert_uint_eq(s->ops.kept_bytes, 5);
    sweep_ack(&f, s, 1); /* never back */
    ck_assert_uint_eq(s->order.acked, 2);
    sweep_ack(&f, s, 3);
    ck_assert_uint_eq(s->ops.kept_bytes, 0);
    ck_assert_uint_eq(s->ops.count, 1);
    struct op *loose = op_create_unnumbered(s, NULL);
    ck_assert_ptr_nonnull(loose);
    ck_assert_uint_eq(s->ops.count, 1);
    op_destroy(loose);
    session_destroy(s);
    session_destroy(NULL);
}
END_TEST

static void ignored(struct front *f)
{
    (void)f;
}

static void answered(struct session *s, uint64_t first, uint64_t last)
{
    for (uint64_t seq = last; seq >= first; seq--) { /* workers tell in any order */
        ck_assert(op_answer(op_create(s, seq, NULL), bytes_str("an answer")));
    }
}

/* An op is looked at only where a job is not answered yet. */
START_TEST(answers_from_before_are_passed_in_ranges)
{
    struct session *s = session_new();
    ck_assert_ptr_nonnull(op_create(s, 500, NULL));
    answered(s, 501, 1000);
    answered(s, 1, 499);
    session_index_answers(s);
    ck_assert_uint_eq(session_skip(s, true), 2);
    ck_assert_uint_eq(s->order.expect, 500);
    ck_assert_ptr_nonnull(s->order.known.ranges); /* HELLO may come again */
    s->order.fresh = false;
    ck_assert_uint_eq(session_skip(s, false), 3);
    ck_assert_uint_eq(s->order.expect, 1001);
    ck_assert_ptr_null(s->order.known.ranges);
    session_destroy(s);
}
END_TEST

/* Many are forgotten in slices, but not found any more from HELLO on. */
START_TEST(answers_that_the_client_has_are_hidden_at_once)
{
    static struct front f;
    struct session *s = session_new();
    struct ack_range range = {.first = 950, .end = 960};
    answered(s, 1, 1000);
    s->order.expect = s->order.resumed = 901;
    s->order.acked = 900;
    s->order.before =
        (struct ack_set){.ranges = memcpy(malloc(sizeof range), &range, sizeof range)};
    s->order.before.count = 1;
    f.hooks.kick = ignored;
    sweep_left(&f, s);
    ck_assert_uint_gt(s->ops.count, 90);
    ck_assert_ptr_null(op_find(s, 1));
    ck_assert_ptr_null(op_find(s, 900));
    ck_assert_ptr_null(op_find(s, 959));
    ck_assert_ptr_nonnull(op_find(s, 960));
    s->order.fresh = false;
    (void)session_skip(s, true); /* past what the sweep needs still */
    ck_assert_uint_eq(s->order.expect, 1001);
    ck_assert_ptr_null(op_find(s, 959));
    sweep_some(&f);
    ck_assert_uint_eq(s->ops.count, 90);
    session_destroy(s);
}
END_TEST

static struct request *early(uint64_t seq)
{
    struct request *r = calloc(1, sizeof *r);
    ck_assert_ptr_nonnull(r);
    r->msg.ping.seq = seq;
    return r;
}

/* Their answers have no lane to go by any more. */
START_TEST(early_requests_forget_a_lane_that_is_gone)
{
    struct session *s = session_new();
    struct request *r[] = {early(2), early(3)};
    struct err e = ERR_INIT;
    struct request *older = NULL;
    for (int i = 0; i < 2; i++) {
        r[i]->session = s;
        r[i]->ring_id = 7;
        ck_assert_int_eq(early_put(s, r[i], r[i]->msg.ping.seq, 4, &older, &e), 0);
    }
    session_lane_closed(s);
    for (uint64_t seq = 2; seq <= 3; seq++) {
        s->order.expect = seq;
        struct request *taken = early_take(s, s->order.expect);
        ck_assert_ptr_nonnull(taken);
        ck_assert_uint_eq(taken->ring_id, 0);
        free(taken);
    }
    session_destroy(s);
}
END_TEST

/* A front that ends has no use for them; what is left behind is for the leak checker to find. */
START_TEST(early_requests_go_with_their_session)
{
    struct session *s = session_new();
    struct request *r[] = {early(4), early(2)};
    struct request *older = NULL;
    struct err e = ERR_INIT;
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(early_put(s, r[i], r[i]->msg.ping.seq, 4, &older, &e), 0);
    }
    session_destroy(s);
}
END_TEST

START_TEST(early_requests_wait_for_their_turn)
{
    struct session *s = session_new();
    struct request *r[] = {early(4), early(2), early(3)};
    struct err e = ERR_INIT;
    struct request *older = NULL;
    for (int i = 0; i < 3; i++) {
        r[i]->size = 100;
        ck_assert_int_eq(early_put(s, r[i], r[i]->msg.ping.seq, 4, &older, &e), 0);
        ck_assert_ptr_null(older);
    }
    struct request *twice = early(3);
    twice->size = 40; /* the newer one stays, in a window that is full, too */
    ck_assert_int_eq(early_put(s, twice, 3, 3, &older, &e), 0);
    ck_assert_ptr_eq(older, r[2]);
    ck_assert_uint_eq(s->early.count, 3);
    ck_assert_uint_eq(s->early.bytes, 240);
    r[2] = twice;
    twice = older;
    ck_assert_int_eq(early_put(s, twice, 6, 4, &older, &e), ERR_BUSY);
    ck_assert_int_eq(early_put(s, twice, 5, 3, &older, &e), ERR_BUSY); /* it is full */
    ck_assert_ptr_null(early_take(s, s->order.expect));
    for (uint64_t seq = 2; seq <= 4; seq++) {
        s->order.expect = seq;
        struct request *taken = early_take(s, s->order.expect);
        ck_assert_ptr_nonnull(taken);
        ck_assert_uint_eq(taken->msg.ping.seq, seq);
        ck_assert(seq != 3 || taken == r[2]);
    }
    ck_assert_ptr_null(early_take(s, s->order.expect));
    ck_assert_uint_eq(s->early.count + s->early.bytes, 0);
    for (int i = 0; i < 3; i++) {
        free(r[i]);
    }
    free(twice);
    session_destroy(s);
}
END_TEST

START_TEST(results_and_notices_go_in_order)
{
    struct session *s = session_new();
    ck_assert(session_result(s, 7, bytes_str("a")));
    ck_assert(session_result(s, 8, bytes_str("bc")));
    ck_assert_uint_eq(s->events.results->job, 7);
    ck_assert_uint_eq(s->events.results->next->job, 8);
    ck_assert_mem_eq(s->events.results->next->record, "bc", 2);
    unsigned count = 0;
    while (session_notice(s, 10000, NOTICE_BUFFER_LOST, count)) {
        count++; /* it ends: a client that never waits costs no more than so */
    }
    ck_assert_uint_eq(s->events.notices->handle, 0);
    ck_assert_uint_eq(s->events.notices->next->handle, 1);
    session_destroy(s);
}
END_TEST

START_TEST(notices_of_a_tenant_are_bounded)
{
    struct session *s = session_new();
    struct session *other = session_new();
    for (unsigned i = 0; i < 3; i++) {
        ck_assert(session_notice(i < 2 ? s : other, 3, NOTICE_BUFFER_LOST, i));
    }
    ck_assert(!session_notice(s, 3, NOTICE_BUFFER_LOST, 3));
    ck_assert(!session_notice(other, 3, NOTICE_BUFFER_LOST, 3));
    session_notice_drop(s); /* told */
    ck_assert(session_notice(other, 3, NOTICE_BUFFER_LOST, 3));
    s->tenant->limits.most[TENANT_NOTICES] = 4;
    ck_assert(session_notice(s, 3, NOTICE_BUFFER_LOST, 4));
    ck_assert(!session_notice(s, 3, NOTICE_BUFFER_LOST, 5));
    s->tenant->limits.most[TENANT_NOTICES] = 0;
    struct tenant *t = s->tenant;
    session_destroy(s);
    session_destroy(other);
    ck_assert_uint_eq(t->held[TENANT_NOTICES], 0);
}
END_TEST

START_TEST(openers_are_counted_each_time)
{
    struct session *s = session_new();
    struct session *other = session_new();
    struct buffer *b = calloc(1, sizeof *b);
    ck_assert_ptr_nonnull(b);
    b->host_fd = -1;
    ck_assert(buffer_opener_add(b, s, 5));
    ck_assert(buffer_opener_add(b, s, 6));
    ck_assert(!buffer_opener_remove(b, other));
    ck_assert_uint_eq(b->openers, 2);
    ck_assert(buffer_opener_remove(b, s));
    ck_assert_uint_eq(b->opener->seq, 5);
    ck_assert(buffer_opener_remove(b, s));
    ck_assert(!buffer_opener_remove(b, s));
    ck_assert_uint_eq(b->openers, 0);
    ck_assert(buffer_opener_add(b, other, 7)); /* goes with the buffer */
    buffer_destroy(b);
    session_destroy(s);
    session_destroy(other);
}
END_TEST

/* ---- work --------------------------------------------------------------------------------- */

START_TEST(work_has_limits)
{
    struct work w;
    struct err e = ERR_INIT;
    work_init(&w);
    ck_assert_int_eq(w.device, -1);
    ck_assert_ptr_null(work_add_ref(&w)); /* of which step? */
    unsigned steps = 0;
    while (work_add_step(&w, OP_FILL, 0, &e) != NULL) {
        steps++;
    }
    ck_assert_uint_eq(steps, WORK_STEPS_MAX);
    ck_assert_int_eq(e.code, ERR_LIMIT);
    err_init(&e);
    static struct buffer buffers[WORK_USES_MAX + 1];
    for (unsigned i = 0; i < WORK_USES_MAX; i++) {
        ck_assert_ptr_nonnull(work_use_of(&w, &buffers[i]));
    }
    ck_assert_ptr_null(work_use_of(&w, &buffers[WORK_USES_MAX]));
    ck_assert_ptr_eq(work_use_of(&w, &buffers[3]), &w.uses[3]);
    unsigned index = 0;
    unsigned temps = 0;
    while (work_add_temp(&w, 4, &index, &e) == 0) {
        temps++;
    }
    ck_assert_int_eq(e.code, ERR_LIMIT);
    ck_assert_uint_eq(temps, 1024);
    ck_assert_uint_eq(index, 1023);
    struct module *m = (struct module *)&w; /* an address is all that counts */
    ck_assert_int_eq(work_add_module(&w, m, &e), 0);
    ck_assert_int_eq(work_add_module(&w, m, &e), 0);
    ck_assert_uint_eq(w.module_count, 1);
    work_finish(&w);
    ck_assert_uint_eq(w.step_count, 0);
    ck_assert_ptr_null(w.steps);
}
END_TEST

START_TEST(staging_offsets_are_aligned_and_outputs_bounded)
{
    struct work w;
    struct err e = ERR_INIT;
    uint64_t offset = 99;
    work_init(&w);
    ck_assert_int_eq(work_add_input(&w, bytes_of(&w, 1), &offset, &e), 0);
    ck_assert_uint_eq(offset, 0);
    ck_assert_int_eq(work_add_input(&w, bytes_of(&w, 1), &offset, &e), 0);
    ck_assert_uint_eq(offset, 256);
    ck_assert_uint_eq(w.input_bytes, 512);
    ck_assert_int_eq(work_add_output(&w, 0, 0, PROTO_INLINE_MAX, &offset, &e), 0);
    ck_assert_int_eq(work_add_output(&w, 0, 0, 1, &offset, &e), ERR_LIMIT);
    ck_assert_uint_eq(w.output_count, 1);
    work_finish(&w);
    unsigned count = 0;
    while (work_add_output(&w, 0, 0, 0, &offset, &e) == 0) {
        count++;
    }
    ck_assert_uint_eq(count, PROTO_OUTPUTS_MAX);
    ck_assert_int_eq(work_add_output(&w, 0, 0, UINT64_MAX, &offset, &e), ERR_LIMIT);
    work_finish(&w);
}
END_TEST

START_TEST(an_output_of_all_bytes_there_are_is_over_the_limit)
{
    struct work w;
    struct err e = ERR_INIT;
    uint64_t offset = 0;
    work_init(&w);
    ck_assert_int_eq(work_add_output(&w, 0, 0, 256, &offset, &e), 0);
    ck_assert_int_eq(work_add_output(&w, 0, 0, UINT64_MAX - 10, &offset, &e), ERR_LIMIT);
    work_finish(&w);
}
END_TEST

/* ---- tables and records ---------------------------------------------------------------------- */

START_TEST(tables_are_what_was_put_in)
{
    struct table t;
    struct capbuf out;
    struct err e = ERR_INIT;
    table_init(&t, "jobs");
    capbuf_init(&out, 1 << 20);
    table_column(&t, "id", COLUMN_HANDLE, false);
    table_column(&t, "label", COLUMN_TEXT, true);
    char longer[2 * PROTO_TEXT_MAX];
    memset(longer, 'x', sizeof longer);
    for (uint64_t i = 0; i < 3; i++) {
        table_value(&t, i + 10);
        if (i < 2) {
            table_text(&t, i == 0 ? "job 0" : "job 1");
        } else {
            table_put(&t, (struct proto_cell){.text = bytes_of(longer, sizeof longer)});
        }
        table_row_end(&t);
    }
    ck_assert_int_eq(table_encode(&t, &out, &e), 0);
    struct msg_table m;
    ck_assert_int_eq(proto_decode(&schema_msg_table, capbuf_view(&out), &m, &e), 0);
    ck_assert(bytes_equal_str(m.name, "jobs"));
    ck_assert_uint_eq(m.columns.count, 2);
    ck_assert_uint_eq(m.rows.count, 3);
    struct proto_iter rows = proto_iter_of(m.rows);
    struct proto_row row;
    struct proto_cell c = {0};
    for (uint64_t i = 0; proto_list_next(&rows, &schema_row, &row); i++) {
        struct proto_iter cells = proto_iter_of(row.cells);
        ck_assert(proto_list_next(&cells, &schema_cell, &c));
        ck_assert_uint_eq(c.value, i + 10);
        ck_assert(proto_list_next(&cells, &schema_cell, &c));
        ck_assert(i != 1 || bytes_equal_str(c.text, "job 1"));
    }
    ck_assert_uint_eq(c.text.size, PROTO_TEXT_MAX); /* cut, not refused */
    table_finish(&t);
    capbuf_finish(&out);
}
END_TEST

START_TEST(a_failed_table_says_so)
{
    struct table t;
    struct capbuf out;
    struct err e = ERR_INIT;
    table_init(&t, "jobs");
    capbuf_init(&out, 1 << 20);
    char name[PROTO_NAME_MAX + 2];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    table_column(&t, name, COLUMN_TEXT, false);
    ck_assert_int_eq(table_encode(&t, &out, &e), ERR_LIMIT);
    ck_assert_uint_eq(out.size, 0);
    table_finish(&t);
    capbuf_finish(&out);
}
END_TEST

START_TEST(record_of_a_buffer_comes_back)
{
    struct tenant tenant = {.key = 78, .name = "uid:77"};
    struct buffer b = {.tenant = &tenant,
                       .user = 77,
                       .shape = {.dtype = DTYPE_F32, .ndim = 2, .dim = {3, 5}},
                       .bytes = 60,
                       .seq = 12,
                       .freed_by = 13,
                       .rights = 3,
                       .linger_ns = 9,
                       .client_id = {1, 2, 3}};
    (void)strcpy(b.label, "weights");
    (void)strcpy(b.name, "shared");
    spans_add(&b.defined, 0, 60);
    struct capbuf out;
    struct err e = ERR_INIT;
    struct msg_record_buffer m;
    capbuf_init(&out, FRAME_DEVICE_MAX);
    ck_assert_int_eq(record_encode_buffer(&b, &out, &e), 0);
    ck_assert_int_eq(proto_decode(&schema_msg_record_buffer, capbuf_view(&out), &m, &e), 0);
    ck_assert_mem_eq(m.client_id.data, b.client_id, sizeof b.client_id);
    ck_assert_uint_eq(m.uid, 77);
    ck_assert(bytes_equal_str(m.tenant, "uid:77"));
    ck_assert_uint_eq(m.seq, 12);
    ck_assert_uint_eq(m.freed, 13);
    ck_assert_uint_eq(m.left, 1);
    ck_assert_uint_eq(m.dtype, DTYPE_F32);
    ck_assert_uint_eq(m.d1, 5);
    ck_assert(bytes_equal_str(m.label, "weights"));
    ck_assert(bytes_equal_str(m.name, "shared"));
    ck_assert_uint_eq(m.rights, 3);
    ck_assert_uint_eq(m.linger_ns, 9);
    ck_assert_uint_eq(m.defined, 1);
    capbuf_finish(&out);
}
END_TEST

START_TEST(record_of_a_job_comes_back)
{
    struct tenant tenant = {.key = 78, .name = "uid:77"};
    struct session *s = session_new();
    s->key.client_id[15] = 9;
    struct buffer b = {.handle = 0x500000001};
    struct work_use use = {.buffer = &b, .access = ACCESS_INOUT};
    struct work_output output = {.step = 2, .arg = 1, .offset = 256, .size = 8};

    struct job j = {.tenant = &tenant,
                    .session = s,
                    .seq = 31,
                    .async = true,
                    .limit_ns = 5,
                    .submitted_ns = 6,
                    .input = 512,
                    .output = 1024,
                    .work = {.uses = &use,
                             .use_count = 1,
                             .outputs = &output,
                             .output_count = 1,
                             .input_bytes = 3,
                             .output_bytes = 512}};
    struct capbuf out;
    struct err e = ERR_INIT;
    struct msg_record_job m;
    capbuf_init(&out, FRAME_DEVICE_MAX);
    ck_assert_int_eq(record_encode_job(&j, &out, &e), 0);
    ck_assert_int_eq(proto_decode(&schema_msg_record_job, capbuf_view(&out), &m, &e), 0);
    ck_assert_mem_eq(m.client_id.data, s->key.client_id, PROTO_CLIENT_ID_BYTES);
    ck_assert_uint_eq(m.seq, 31);
    ck_assert_uint_eq(m.async, 1);
    ck_assert_uint_eq(m.output, 1024);
    ck_assert_uint_eq(m.output_size, 512);
    struct proto_record_use seen_use;
    struct proto_record_output seen_output;
    struct proto_iter it = proto_iter_of(m.uses);
    ck_assert(proto_list_next(&it, &schema_record_use, &seen_use));
    ck_assert_uint_eq(seen_use.handle, b.handle);
    ck_assert_uint_eq(seen_use.access, ACCESS_INOUT);
    it = proto_iter_of(m.outputs);
    ck_assert(proto_list_next(&it, &schema_record_output, &seen_output));
    ck_assert_uint_eq(seen_output.step, 2);
    ck_assert_uint_eq(seen_output.offset, 256);
    capbuf_finish(&out);
    session_destroy(s);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {spans_join_and_split,
                                  spans_agree_with_flags,
                                  spans_forget_the_smallest,
                                  tenants_are_found_again_and_strikes_count,
                                  buffers_are_found_by_their_tenant_only,
                                  buffer_states_have_names_and_wire_values,
                                  answers_are_kept_until_acknowledged,
                                  answers_from_before_are_passed_in_ranges,
                                  answers_that_the_client_has_are_hidden_at_once,
                                  early_requests_forget_a_lane_that_is_gone,
                                  early_requests_wait_for_their_turn,
                                  early_requests_go_with_their_session,
                                  results_and_notices_go_in_order,
                                  notices_of_a_tenant_are_bounded,
                                  openers_are_counted_each_time,
                                  work_has_limits,
                                  staging_offsets_are_aligned_and_outputs_bounded,
                                  an_output_of_all_bytes_there_are_is_over_the_limit,
                                  tables_are_what_was_put_in,
                                  a_failed_table_says_so,
                                  record_of_a_buffer_comes_back,
                                  record_of_a_job_comes_back};
    return suite_run("nouns", tests, sizeof tests / sizeof tests[0]);
}
