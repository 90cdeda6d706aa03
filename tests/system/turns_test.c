/* The longest turn of the loop, in units of work, while every kind of request comes at its limit,
 * all at once, in the worst order, and then ends. No turn is longer than two slices, whatever the
 * load: one slice, and the last piece of work that each source of work began. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/shape.h"
#include "daemon/front/model/front.h"
#include "daemon/front/model/session.h"
#include "daemon/front/model/work.h"
#include "proto/lane.h"
#ifdef SYSTEM_FAKECUDA
#include "tests/system/double.h"
#endif
#include "tests/system/harness/raw.h"

#define LONGEST (2 * TURN_UNITS)

enum { BUFFERS = 20000, OPENINGS = 65536, ANSWERS = 16000, JOBS = 250, SESSIONS = 5 };

static struct daemon d;
static gpud_client *looker;

static void begin(void)
{
    looker = daemon_begin(&d, "--backend", "sim", "--backend-options",
                          "speed=0,script=launch:2=hang", "--set", "jobs.window=2", "--set",
                          "jobs.time_limit_ms=1000000", "--set", "jobs.session_linger_ms=0", NULL);
}

static uint64_t longest(void)
{
    return query_value(looker, "status", NULL, "longest_turn");
}

/* So far; `what` for people. */
static void check(const char *what)
{
    uint64_t units = longest();
    if (getenv("GPUD_TURNS_TOLD") != NULL) {
        printf("%-28s %8llu units\n", what, (unsigned long long)units);
        (void)fflush(stdout);
        return;
    }
    ck_assert_msg(units <= LONGEST, "%s: a turn of %llu units, at most %u", what,
                  (unsigned long long)units, LONGEST);
}

static void end(void)
{
    ck_until(query_value(looker, "status", NULL, "sessions") == 1);
    ck_until(query_value(looker, "status", NULL, "queued") == 0);
    check("the end");
    daemon_end(&d, looker);
}

/* ---- requests ------------------------------------------------------------------------------- */

static void create(struct raw *c, unsigned count, uint64_t flags)
{
    for (unsigned i = 0; i < count; i++) {
        struct msg_buffer_create m = {
            .dtype = DTYPE_F32, .ndim = 1, .d0 = 16, .flags = BUFFER_FLAG_ZERO | flags};
        raw_send(c, &schema_msg_buffer_create, &m, true);
    }
    raw_drain(c);
    ck_assert_msg(c->told[MSG_KIND_ERROR] == 0, "%s", c->text);
}

static void named(char name[16], unsigned i)
{
    (void)snprintf(name, 16, "b%u", i);
}

static void publish(struct raw *c)
{
    char name[16];
    const unsigned count = c->count; /* each answer is a BUFFER, too */
    for (unsigned i = 0; i < count; i++) {
        named(name, i);
        struct msg_buffer_publish m = {.handle = c->handles[i],
                                       .name = bytes_str(name),
                                       .rights = 3,
                                       .linger_ns = 50 * MS + i};
        raw_send(c, &schema_msg_buffer_publish, &m, true);
    }
}

static void ask_info(struct raw *c, uint64_t handle, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct msg_buffer_info m = {.handle = handle};
        raw_send(c, &schema_msg_buffer_info, &m, true);
    }
    raw_drain(c);
}

static void ping(struct raw *c)
{
    struct msg_ping m = {0};
    ck_assert_uint_eq(raw_ask(c, &schema_msg_ping, &m, false), MSG_KIND_PONG);
}

static void bye(struct raw *c)
{
    struct msg_bye m = {0};
    ck_assert_uint_eq(raw_ask(c, &schema_msg_bye, &m, false), MSG_KIND_DONE);
    raw_close(c);
}

/* A job that reads or writes `count` buffers from the first on, `steps` steps of one kind. */
static void submit(struct raw *c, const uint64_t *handles, unsigned count, bool writes,
                   uint64_t flags, uint64_t deadline_ns)
{
    struct capbuf steps;
    capbuf_init(&steps, 1024 * 1024);
    for (unsigned i = 0; i < count; i++) {
        struct capbuf args;
        struct proto_arg buffer = {.tag = ARG_BUFFER, .handle = handles[i]};
        struct proto_arg value = {.tag = ARG_SCALAR, .dtype = DTYPE_F32};
        capbuf_init(&args, 4096);
        ck_assert_int_eq(proto_list_add(&schema_arg, &buffer, &args, NULL), 0);
        if (writes) {
            ck_assert_int_eq(proto_list_add(&schema_arg, &value, &args, NULL), 0);
        }
        struct proto_step step = {.op = writes ? OP_FILL : OP_READ,
                                  .args = proto_list_of(&args, writes ? 2 : 1)};
        ck_assert_int_eq(proto_list_add(&schema_step, &step, &steps, NULL), 0);
        capbuf_finish(&args);
    }
    struct msg_submit m = {
        .flags = flags, .deadline_ns = deadline_ns, .steps = proto_list_of(&steps, count)};
    raw_send(c, &schema_msg_submit, &m, true);
    capbuf_finish(&steps);
}

/* Nothing else runs on the device from here on. */
static gpud_job *block(gpud_buffer *ret_buffer)
{
    gpud_job *job = NULL;
    ck_gpud_ok(
        gpud_buffer_create(looker, gpud_shape_1d(GPUD_F32, 4), GPUD_BUFFER_ZERO, NULL, ret_buffer));
    gpud_arg args[] = {gpud_f32(1), gpud_out(*ret_buffer)};
    ck_gpud_ok(gpud_launch(looker, kernel_find(looker, "fill"), args, 2, NULL, NULL, &job));
    ck_until(query_value(looker, "status", NULL, "in_flight") == 1);
    return job;
}

/* The job of block() hangs: the end of its worker ends it. */
static void unblock(gpud_job *blocker)
{
    ck_assert_int_eq(kill(daemon_worker(&d, 0), SIGKILL), 0);
    (void)gpud_wait(blocker, PATIENCE);
    gpud_job_free(blocker);
}

static void query(struct raw *c, const char *what, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct msg_query m = {.what = bytes_str(what)};
        raw_send(c, &schema_msg_query, &m, false);
    }
    raw_drain(c);
    ck_assert_uint_eq(c->told[MSG_KIND_TABLE], count);
    raw_reset(c);
}

/* Some of the answers are of this kind. */
static void try_many(struct raw *c, const struct schema *schema, void *msg, unsigned count,
                     bool sequenced, unsigned kind)
{
    raw_reset(c);
    for (unsigned i = 0; i < count; i++) {
        raw_send(c, schema, msg, sequenced);
    }
    raw_drain(c);
    ck_assert_msg(c->told[kind] > 0, "%s: %s", schema->name, c->text);
    check(schema->name);
}

/* ---- buffers -------------------------------------------------------------------------------- */

START_TEST(buffers)
{
    struct raw c;
    struct raw other;
    begin();
    raw_open(&c, d.url, 1);
    create(&c, BUFFERS, 0);
    check("BUFFER_CREATE");
    publish(&c);
    raw_drain(&c);
    check("BUFFER_PUBLISH");
    raw_open(&other, d.url, 2);
    for (unsigned i = 0; i < OPENINGS; i++) {
        char name[16];
        named(name, i % 3 == 0 ? i % BUFFERS : BUFFERS - 1);
        struct msg_buffer_open m = {.name = bytes_str(name)};
        raw_send(&other, &schema_msg_buffer_open, &m, true);
    }
    raw_drain(&other);
    ck_assert_msg(other.told[MSG_KIND_ERROR] == 0, "%s", other.text);
    check("BUFFER_OPEN");
    for (unsigned i = 0; i < 500; i++) {
        struct msg_buffer_seal m = {.handle = c.handles[i]};
        raw_send(&c, &schema_msg_buffer_seal, &m, true);
    }
    raw_drain(&c);
    check("BUFFER_SEAL");
    for (unsigned i = 0; i < 2000; i++) {
        struct msg_buffer_free m = {.handle = c.handles[i]};
        raw_send(&c, &schema_msg_buffer_free, &m, true);
    }
    raw_drain(&c);
    check("BUFFER_FREE");
    bye(&c);
    check("the maker's BYE");
    raw_close(&other);
    ck_until(query_value(looker, "status", NULL, "sessions") == 1);
    check("the opener's end");
    ck_until(query_value(looker, "tenants", NULL, "buffers") == 0);
    end();
}
END_TEST

static unsigned asks_after(struct raw *c, uint64_t number)
{
    struct msg_buffer_create m = {.dtype = DTYPE_F32, .ndim = 1, .d0 = 16};
    c->seq = number;
    return raw_ask(c, &schema_msg_buffer_create, &m, true);
}

/* A front that begins anew knows the numbers of all buffers. _i 0: the client has these answers; 1:
 * it has none of them. */
START_TEST(resumed)
{
    struct raw c;
    struct msg_welcome w;
    looker = daemon_begin(&d, "--backend", "sim", "--backend-options", "speed=0", NULL);
    raw_open(&c, d.url, 1);
    create(&c, BUFFERS, 0);
    const uint64_t next = c.seq;
    raw_close(&c);
    daemon_hand_over(&d);
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    raw_resume(&c, d.url, 1, _i == 0 ? next : 1);
    ck_assert_int_eq(proto_decode(&schema_msg_welcome, c.last, &w, NULL), 0);
    ck_assert_uint_eq(w.resumed, 1);
    ck_assert_uint_eq(w.expect, next);
    check("HELLO after a restart");
    ck_until(asks_after(&c, next) == MSG_KIND_BUFFER); /* BUSY while answers are being forgotten */
    check("BUFFER_CREATE after it");
    bye(&c);
    end();
}
END_TEST

/* ---- answers -------------------------------------------------------------------------------- */

START_TEST(answers)
{
    struct raw c;
    begin();
    raw_open(&c, d.url, 1);
    create(&c, 1, 0);
    uint64_t handle = c.handles[0];
    c.hoards = true;
    ask_info(&c, handle, ANSWERS);
    check("answers that are kept");
    c.ack = c.seq - 1;
    ping(&c);
    check("one ack of them");
    ask_info(&c, handle, ANSWERS);
    struct capbuf spans;
    capbuf_init(&spans, 65536);
    for (unsigned i = 0; i < 1000; i++) {
        struct proto_span span = {.first = c.ack + 2 + i * 16, .count = 15};
        ck_assert_int_eq(proto_list_add(&schema_span, &span, &spans, NULL), 0);
    }
    struct msg_taken taken = {.taken = proto_list_of(&spans, 1000)};
    ck_assert_uint_eq(raw_ask(&c, &schema_msg_taken, &taken, false), MSG_KIND_DONE);
    capbuf_finish(&spans);
    struct msg_done done;
    ck_assert_int_eq(proto_decode(&schema_msg_done, c.last, &done, NULL), 0);
    ck_assert_uint_eq(done.value, 15000);
    check("TAKEN");
    ask_info(&c, handle, 14000);
    bye(&c);
    check("BYE with answers");
    raw_open(&c, d.url, 2);
    create(&c, 1, 0);
    c.hoards = true;
    ask_info(&c, c.handles[0], ANSWERS);
    raw_close(&c);
    end();
}
END_TEST

/* ---- programs and modules ------------------------------------------------------------------- */

static void program(struct raw *c)
{
    struct msg_program_create m = {.name = bytes_str("empty")};
    raw_send(c, &schema_msg_program_create, &m, true);
}

START_TEST(programs)
{
    struct raw c[4];
    begin();
    for (unsigned k = 0; k < 4; k++) {
        raw_open(&c[k], d.url, k);
        for (unsigned i = 0; i < PROGRAMS_MAX; i++) {
            program(&c[k]);
        }
        raw_drain(&c[k]);
        ck_assert_msg(c[k].count == PROGRAMS_MAX, "%s", c[k].text);
    }
    check("PROGRAM_CREATE");
    for (unsigned i = PROGRAMS_MAX; i > PROGRAMS_MAX / 2; i--) {
        struct msg_program_free m = {.program = c[0].handles[i - 1]};
        raw_send(&c[0], &schema_msg_program_free, &m, true);
    }
    raw_drain(&c[0]);
    check("PROGRAM_FREE");
    for (unsigned i = 0; i < 4; i++) {
        bye(&c[3 - i]);
    }
    check("BYE with programs");
    end();
}
END_TEST

static const char source[] = "//@kernel k(inout f32 y[n])  over n\n{\n    y[i] = y[i] + 1.0f;\n}\n";

/* A plain back end compiles none. */
START_TEST(modules_that_fail)
{
    struct raw c;
    begin();
    raw_open(&c, d.url, 1);
    for (unsigned i = 0; i < 300; i++) {
        struct msg_module_load m = {.name = bytes_str("m"),
                                    .lang = LANG_DIALECT,
                                    .source = bytes_of(source, sizeof source - 1),
                                    .file = bytes_str("k.gk")};
        raw_send(&c, &schema_msg_module_load, &m, true);
    }
    raw_drain(&c);
    ck_assert_uint_eq(c.told[MSG_KIND_ERROR], 300);
    check("MODULE_LOAD");
    for (unsigned i = 0; i < 2000; i++) {
        struct msg_kernel_find m = {.name = bytes_str(i % 2 == 0 ? "fill" : "none")};
        raw_send(&c, &schema_msg_kernel_find, &m, true);
    }
    raw_drain(&c);
    ck_assert_uint_eq(c.told[MSG_KIND_KERNEL_FOUND], 1000);
    check("KERNEL_FIND");
    bye(&c);
    end();
}
END_TEST

/* As many kernels as a source of the dialect has at most. */
static void write_source(struct capbuf *out)
{
    char text[128];
    for (unsigned i = 0; i < 64; i++) {
        int n =
            snprintf(text, sizeof text,
                     "//@kernel k%u(inout f32 y[n])  over n\n{\n    y[i] = y[i] + 1.0f;\n}\n", i);
        ck_assert(capbuf_append(out, text, (size_t)n));
    }
}

/* All of a tenant's kernels, and the last one of a module is looked for. */
START_TEST(modules)
{
    enum { LOADS = 10 };
    struct raw c;
    struct capbuf text;
    capbuf_init(&text, 1024 * 1024);
    write_source(&text);
    looker = daemon_begin(&d, "--backend", "opencl", "--set", "jobs.session_linger_ms=0", NULL);
    raw_open(&c, d.url, 1);
    for (unsigned i = 0; i < LOADS; i++) {
        struct msg_module_load m = {.name = bytes_str("m"),
                                    .lang = LANG_DIALECT,
                                    .source = capbuf_view(&text),
                                    .file = bytes_str("k.gk")};
        raw_send(&c, &schema_msg_module_load, &m, true);
        raw_await(&c, i == 0 ? 0 : LOADS); /* the others are in the cache */
    }
    raw_drain(&c);
    capbuf_finish(&text);
    ck_assert_msg(c.told[MSG_KIND_MODULE] == LOADS, "%s", c.text);
    check("MODULE_LOAD");
    struct msg_kernel_find last = {.name = bytes_str("k63"), .module = c.handles[LOADS - 1]};
    const uint64_t first = c.handles[0];
    try_many(&c, &schema_msg_kernel_find, &last, 2000, true, MSG_KIND_KERNEL_FOUND);
    struct msg_module_unload unload = {.module = first};
    try_many(&c, &schema_msg_module_unload, &unload, 1, true, MSG_KIND_DONE);
    query(&c, "kernels", 3);
    check("QUERY kernels");
    bye(&c);
    check("BYE with modules");
    end();
}
END_TEST

#ifdef SYSTEM_FAKECUDA
/* A module of many variables, each of which becomes a buffer; then all go at once. */
START_TEST(variables)
{
    enum { VARIABLES = 8000 };
    struct raw c;
    struct capbuf text;
    char line[64];
    capbuf_init(&text, 1024 * 1024);
    int n = snprintf(line, sizeof line, ".version 8.0\n.target sm_80\n.address_size 64\n");
    ck_assert(capbuf_append(&text, line, (size_t)n));
    for (unsigned i = 0; i < VARIABLES; i++) {
        n = snprintf(line, sizeof line, ".global .align 4 .u32 v%u;\n", i);
        ck_assert(capbuf_append(&text, line, (size_t)n));
    }
    static const char kernel[] = ".visible .entry fake_sleep(.param .u32 ms)\n{\n\tret;\n}\n";
    ck_assert(capbuf_append(&text, kernel, sizeof kernel - 1));
    daemon_prepare(&d, "--backend", "cuda", "--set", "jobs.session_linger_ms=0", NULL);
    looker = double_begin(&d, "");
    raw_open(&c, d.url, 1);
    struct msg_module_load load = {.name = bytes_str("m"),
                                   .lang = LANG_PTX,
                                   .source = capbuf_view(&text),
                                   .file = bytes_str("m.ptx")};
    ck_assert_msg(raw_ask(&c, &schema_msg_module_load, &load, true) == MSG_KIND_MODULE, "%s",
                  c.text);
    capbuf_finish(&text);
    const uint64_t module = c.handles[0];
    raw_reset(&c);
    for (unsigned i = 0; i < VARIABLES; i++) {
        (void)snprintf(line, sizeof line, "v%u", i);
        struct msg_buffer_create m = {.dtype = DTYPE_U32,
                                      .ndim = 1,
                                      .d0 = 1,
                                      .module = module,
                                      .variable = bytes_str(line),
                                      .kernels = ACCESS_INOUT};
        raw_send(&c, &schema_msg_buffer_create, &m, true);
    }
    raw_drain(&c);
    ck_assert_msg(c.told[MSG_KIND_BUFFER] == VARIABLES, "%s", c.text);
    check("BUFFER_CREATE of variables");
    struct msg_buffer_free free = {.handle = c.handles[0]};
    try_many(&c, &schema_msg_buffer_free, &free, 1, true, MSG_KIND_DONE);
    struct msg_module_unload unload = {.module = module};
    try_many(&c, &schema_msg_module_unload, &unload, 1, true, MSG_KIND_DONE);
    bye(&c);
    end();
}
END_TEST
#endif

/* ---- jobs ----------------------------------------------------------------------------------- */

/* FAULT 48: one client makes the loop work as much as it can: as many buffers, answers, jobs
 *   and handles as the limits allow, and their ends
 * required: other clients wait for at most one turn, about 1 ms of work: look-ups by tables and
 *   heaps, the rest in slices
 * defence: `front/pipeline.c`: work_turn; `front/requests/sweep.c`;
 *   `front/views/table_query.c`: table_queries_run; `front/model/agenda.h`
 * also: `test_system_turns`; `front_agenda_test`; `front_admitted_test`:
 *   answers_behind_an_awaited_one_are_forgotten
 * mutants: turn-share, ack-slices */
START_TEST(jobs)
{
    struct raw c[SESSIONS];
    struct raw w;
    struct raw q;
    gpud_buffer b;
    begin();
    gpud_job *blocker = block(&b);
    raw_open(&w, d.url, 100);
    create(&w, WORK_USES_MAX, 0);
    publish(&w);
    raw_drain(&w);
    for (unsigned k = 0; k < SESSIONS; k++) {
        raw_open(&c[k], d.url, k);
        for (unsigned i = 0; i < JOBS; i++) {
            submit(&c[k], w.handles, WORK_USES_MAX, false, SUBMIT_ASYNC,
                   i % 2 == 0 ? 600 * SECOND : 0);
        }
        raw_drain(&c[k]);
        ck_assert_msg(c[k].told[MSG_KIND_ACCEPTED] == JOBS, "%s", c[k].text);
    }
    check("SUBMIT of readers");
    uint64_t writer = w.seq;
    submit(&w, w.handles, WORK_USES_MAX, true, SUBMIT_ASYNC, 0);
    raw_drain(&w);
    check("SUBMIT of a writer");
    for (unsigned i = 0; i < 200; i++) {
        submit(&w, w.handles, WORK_USES_MAX, false, SUBMIT_ASYNC, 0);
    }
    raw_drain(&w);
    check("SUBMIT behind it");
    raw_open(&q, d.url, 101);
    query(&q, "jobs", 3);
    check("QUERY jobs");
    query(&q, "sessions", 3);
    query(&q, "kernels", 3);
    query(&q, "tenants", 3);
    check("QUERY");
    for (uint64_t i = writer; i > writer - 100; i--) {
        struct msg_explain explain = {.job = i + 1000};
        raw_send(&q, &schema_msg_explain, &explain, false);
    }
    raw_drain(&q);
    check("EXPLAIN");
    ping(&w); /* acknowledged: then the number has no answer any more: it is the job's */
    struct msg_cancel cancel = {.number = writer};
    ck_assert_uint_eq(raw_ask(&w, &schema_msg_cancel, &cancel, false), MSG_KIND_DONE);
    check("CANCEL");
    for (unsigned k = 0; k < SESSIONS; k++) {
        raw_close(&c[k]);
    }
    ck_until(query_value(looker, "status", NULL, "queued") <= 200);
    check("ends of sessions with jobs");
    bye(&w);
    bye(&q);
    ck_until(query_value(looker, "status", NULL, "queued") == 0);
    check("BYE with jobs");
    ck_gpud_ok(gpud_cancel(blocker));
    unblock(blocker);
    end();
}
END_TEST

static void send_many(struct raw *c, const struct schema *schema, void *msg, unsigned count,
                      unsigned kind)
{
    raw_reset(c);
    for (unsigned i = 0; i < count; i++) {
        raw_send(c, schema, msg, false);
    }
    raw_drain(c);
    ck_assert_msg(c->told[kind] == count, "%s: %u of %u: %s", schema->name, c->told[kind], count,
                  c->text);
    check(schema->name);
}

static void control(struct raw *c, const char *what, const char *value, unsigned count)
{
    struct msg_control m = {.what = bytes_str(what), .value = bytes_str(value)};
    for (unsigned i = 0; i < count; i++) {
        raw_send(c, &schema_msg_control, &m, false);
    }
    raw_drain(c);
    ck_assert_msg(c->told[MSG_KIND_DONE] >= count, "%s: %s", what, c->text);
    check(what);
}

/* About one job behind many that are ready, and about all there is. */
START_TEST(questions)
{
    enum { MANY = 500 };
    static const char *const tables[] = {"status", "devices", "pool", "config", "timeline"};
    struct raw c[SESSIONS];
    struct raw q;
    struct msg_accepted last;
    gpud_buffer b;
    begin();
    gpud_job *blocker = block(&b);
    for (unsigned k = 0; k < SESSIONS; k++) {
        raw_open(&c[k], d.url, k);
        create(&c[k], WORK_USES_MAX, 0);
        c[k].hoards = true; /* JOB_FIND knows no number that was acknowledged */
        for (unsigned i = 0; i < JOBS; i++) {
            submit(&c[k], c[k].handles, WORK_USES_MAX, false, SUBMIT_ASYNC, 0);
        }
        raw_drain(&c[k]);
    }
    struct raw *own = &c[SESSIONS - 1];
    const uint64_t buffer = own->handles[0];
    ck_assert_int_eq(proto_decode(&schema_msg_accepted, own->last, &last, NULL), 0);
    raw_open(&q, d.url, 100);
    struct msg_job_info info = {.job = last.job};
    send_many(&q, &schema_msg_job_info, &info, MANY, MSG_KIND_JOB);
    struct msg_explain explain = {.job = last.job};
    send_many(&q, &schema_msg_explain, &explain, MANY, MSG_KIND_EXPLANATION);
    for (unsigned i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        query(&q, tables[i], 20);
        check(tables[i]);
    }
    control(&q, "log-level", "info", MANY);
    control(&q, "pool-trim", "0", 20);
    struct msg_wait wait = {.timeout_ns = 1};
    for (unsigned i = 0; i < MANY; i++) {
        ck_assert_uint_eq(raw_ask(own, &schema_msg_wait, &wait, false), MSG_KIND_EVENTS);
    }
    check("WAIT");
    struct msg_job_find find = {.number = own->seq - 1};
    try_many(own, &schema_msg_job_find, &find, MANY, false, MSG_KIND_ACCEPTED);
    struct msg_pool_take take = {.detail = 1, .timeout_ns = SECOND};
    try_many(&q, &schema_msg_pool_take, &take, 20, false, MSG_KIND_TABLE);
    ck_assert_uint_eq(raw_ask(&q, &schema_msg_pool_take, &take, false), MSG_KIND_TABLE);
    struct msg_pool_read pieces = {
        .picture = q.told[MSG_KIND_TABLE], .part = POOL_PIECES, .count = UINT64_MAX};
    try_many(&q, &schema_msg_pool_read, &pieces, MANY, false, MSG_KIND_TABLE);
    struct msg_ring_open ring = {.version = LANE_VERSION};
    try_many(&q, &schema_msg_ring_open, &ring, MANY, true, MSG_KIND_RING);
    struct msg_module_unload unload = {.module = 1};
    try_many(&q, &schema_msg_module_unload, &unload, MANY, true, MSG_KIND_ERROR);
    struct msg_buffer_export export = {.handle = buffer};
    try_many(own, &schema_msg_buffer_export, &export, MANY, true, MSG_KIND_ERROR);
    for (unsigned i = 0; i < MANY; i++) { /* a session is taken up again and again */
        raw_close(&q);
        raw_open(&q, d.url, 1000 + i % 2);
    }
    check("HELLO");
    bye(&q);
    for (unsigned k = 0; k < SESSIONS; k++) {
        bye(&c[k]);
    }
    unblock(blocker);
    end();
}
END_TEST

/* All come due in one moment. */
START_TEST(deadlines)
{
    struct raw c[SESSIONS];
    gpud_buffer b;
    begin();
    gpud_job *blocker = block(&b);
    for (unsigned k = 0; k < SESSIONS; k++) {
        raw_open(&c[k], d.url, k);
        create(&c[k], WORK_USES_MAX, 0);
        for (unsigned i = 0; i < JOBS; i++) {
            submit(&c[k], c[k].handles, WORK_USES_MAX, i % 2 == 0, SUBMIT_ASYNC, 3 * SECOND);
        }
        raw_drain(&c[k]);
    }
    check("SUBMIT with deadlines");
    ck_until(query_value(looker, "status", NULL, "queued") == 0);
    check("deadlines");
    for (unsigned k = 0; k < SESSIONS; k++) {
        raw_close(&c[k]);
    }
    unblock(blocker);
    end();
}
END_TEST

/* Of all that ends on the device at once. */
START_TEST(ends)
{
    struct raw c[SESSIONS];
    struct daemon *of = &d;
    looker = daemon_begin(of, "--backend", "sim", "--backend-options", "speed=0", "--set",
                          "jobs.window=64", "--set", "jobs.session_linger_ms=0", NULL);
    for (unsigned k = 0; k < SESSIONS; k++) {
        raw_open(&c[k], d.url, k);
        create(&c[k], WORK_USES_MAX, 0);
    }
    for (unsigned k = 0; k < SESSIONS; k++) {
        for (unsigned i = 0; i < JOBS / 2; i++) {
            submit(&c[k], c[k].handles, WORK_USES_MAX, i % 2 == 0, 0, 0);
        }
    }
    for (unsigned k = 0; k < SESSIONS; k++) {
        raw_drain(&c[k]);
        ck_assert_msg(c[k].told[MSG_KIND_RESULTS] == JOBS / 2, "%s", c[k].text);
    }
    check("jobs that run");
    for (unsigned k = 0; k < SESSIONS; k++) {
        bye(&c[k]);
    }
    end();
}
END_TEST

/* ---- arenas --------------------------------------------------------------------------------- */

static void part(struct raw *c, uint64_t arena, uint64_t buffer, unsigned parts, unsigned first)
{
    struct capbuf steps;
    capbuf_init(&steps, 1024 * 1024);
    for (unsigned i = 0; i < parts; i++) {
        struct capbuf args;
        struct proto_arg to = {.tag = ARG_BUFFER, .handle = buffer};
        struct proto_arg from = {.tag = ARG_ARENA,
                                 .access = ACCESS_IN,
                                 .handle = arena,
                                 .first = (uint64_t)(first + i) * 64,
                                 .dtype = DTYPE_F32,
                                 .ndim = 1,
                                 .d0 = 16};
        capbuf_init(&args, 4096);
        ck_assert_int_eq(proto_list_add(&schema_arg, &to, &args, NULL), 0);
        ck_assert_int_eq(proto_list_add(&schema_arg, &from, &args, NULL), 0);
        struct proto_step step = {.op = OP_WRITE, .args = proto_list_of(&args, 2)};
        ck_assert_int_eq(proto_list_add(&schema_step, &step, &steps, NULL), 0);
        capbuf_finish(&args);
    }
    struct msg_submit m = {.flags = SUBMIT_ASYNC, .steps = proto_list_of(&steps, parts)};
    raw_send(c, &schema_msg_submit, &m, true);
    capbuf_finish(&steps);
}

START_TEST(arenas)
{
    struct raw c;
    gpud_buffer b;
    begin();
    gpud_job *blocker = block(&b);
    raw_open(&c, d.url, 1);
    create(&c, 1, 0);
    uint64_t buffer = c.handles[0];
    for (unsigned i = 0; i < 60; i++) {
        struct msg_arena_create m = {.bytes = 1 << 20};
        raw_send(&c, &schema_msg_arena_create, &m, true);
    }
    raw_drain(&c);
    ck_assert_msg(c.told[MSG_KIND_ERROR] == 0, "%s", c.text);
    check("ARENA_CREATE");
    for (unsigned i = 0; i < 40; i++) {
        part(&c, c.handles[1], buffer, WORK_USES_MAX, i * 16);
    }
    raw_drain(&c);
    check("SUBMIT with parts of arenas");
    const unsigned refused = c.told[MSG_KIND_ERROR]; /* beyond ARENA_PARTS_MAX */
    for (unsigned i = 60; i > 30; i--) {
        struct msg_arena_free m = {.arena = c.handles[i]};
        raw_send(&c, &schema_msg_arena_free, &m, true);
    }
    raw_drain(&c);
    ck_assert_msg(c.told[MSG_KIND_ERROR] == refused, "%s", c.text);
    check("ARENA_FREE");
    raw_close(&c);
    ck_until(query_value(looker, "status", NULL, "sessions") == 1);
    check("the end of a session with arenas");
    unblock(blocker);
    end();
}
END_TEST

/* Many nonces are to be shown; the newest one is shown first. */
START_TEST(claims)
{
    enum { HOLDERS = 4, EACH = 60 };
    static uint8_t nonces[HOLDERS * EACH][PROTO_NONCE_BYTES];
    const uint8_t unknown[PROTO_NONCE_BYTES] = {0};
    struct raw c[HOLDERS];
    struct msg_welcome w;
    char path[DAEMON_PATH + 16];
    begin();
    for (unsigned k = 0; k < HOLDERS; k++) {
        raw_open(&c[k], d.url, k);
        ck_assert_int_eq(proto_decode(&schema_msg_welcome, c[k].last, &w, NULL), 0);
        ck_assert(bytes_to_str(w.shm, path, sizeof path));
        for (unsigned i = 0; i < EACH; i++) {
            struct msg_arena_create m = {.bytes = 4096};
            struct msg_arena told;
            ck_assert_uint_eq(raw_ask(&c[k], &schema_msg_arena_create, &m, true), MSG_KIND_ARENA);
            ck_assert_int_eq(proto_decode(&schema_msg_arena, c[k].last, &told, NULL), 0);
            ck_assert_uint_eq(told.nonce.size, PROTO_NONCE_BYTES);
            memcpy(nonces[k * EACH + i], told.nonce.data, PROTO_NONCE_BYTES);
        }
    }
    check("ARENA_CREATE with nonces");
    for (unsigned i = HOLDERS * EACH; i > 0; i--) {
        ck_assert_uint_eq(raw_claim(path, bytes_of(unknown, sizeof unknown)), MSG_KIND_ERROR);
        ck_assert_uint_eq(raw_claim(path, bytes_of(nonces[i - 1], PROTO_NONCE_BYTES)),
                          MSG_KIND_GRANTED);
    }
    check("CLAIM");
    for (unsigned k = 0; k < HOLDERS; k++) {
        bye(&c[k]);
    }
    end();
}
END_TEST

/* ---- in the wrong order --------------------------------------------------------------------- */

START_TEST(early)
{
    struct raw c;
    begin();
    raw_open(&c, d.url, 1);
    c.hoards = true;
    for (unsigned round = 0; round < 20; round++) {
        uint64_t first = c.seq;
        for (unsigned i = 256; i > 0; i--) {
            struct msg_buffer_info m = {.handle = 1};
            c.seq = first + i - 1;
            raw_send(&c, &schema_msg_buffer_info, &m, true);
        }
        raw_drain(&c);
        c.seq = first + 256;
        c.ack = c.seq - 1;
    }
    check("requests before their turn");
    bye(&c);
    end();
}
END_TEST

/* Each waits for room, and is tried again. */
START_TEST(parked)
{
    enum { WAITING = 60 };
    struct raw c[WAITING];
    gpud_buffer b;
    looker =
        daemon_begin(&d, "--backend", "sim", "--backend-options", "speed=0,script=launch:2=hang",
                     "--set", "jobs.queue_max=200", "--set", "jobs.window=2", "--set",
                     "jobs.time_limit_ms=1000000", "--set", "jobs.session_linger_ms=0", NULL);
    gpud_job *blocker = block(&b);
    for (unsigned k = 0; k < WAITING; k++) {
        raw_open(&c[k], d.url, k);
        create(&c[k], WORK_USES_MAX, 0);
        for (unsigned i = 0; i < 8; i++) {
            submit(&c[k], c[k].handles, WORK_USES_MAX, true, SUBMIT_BLOCK,
                   k % 2 == 0 ? 4 * SECOND + k * MS : 0);
        }
        raw_await(&c[k], 8);
    }
    check("SUBMITs that wait");
    for (unsigned k = 0; k < WAITING; k++) {
        raw_close(&c[k]);
    }
    ck_until(query_value(looker, "status", NULL, "sessions") == 1);
    unblock(blocker);
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("turns");
    suite_add(suite, buffers);
    suite_add_loop(suite, resumed, 2);
    suite_add(suite, answers);
    suite_add(suite, programs);
    suite_add(suite, modules_that_fail);
    suite_add(suite, modules);
#ifdef SYSTEM_FAKECUDA
    suite_add(suite, variables);
#endif
    suite_add(suite, jobs);
    suite_add(suite, questions);
    suite_add(suite, deadlines);
    suite_add(suite, ends);
    suite_add(suite, arenas);
    suite_add(suite, claims);
    suite_add(suite, early);
    suite_add(suite, parked);
    return system_main(suite);
}
