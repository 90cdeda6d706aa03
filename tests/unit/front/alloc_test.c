/* Every allocation on the way of a job into the queue fails once: nothing is left behind.
 * malloc, calloc and realloc, which are libc's, are linked with --wrap. */
#include <stdlib.h>
#include <string.h>

#include "daemon/front/devices/adopt.h"
#include "daemon/front/memory/buffers.h"
#include "daemon/front/model/op.h"
#include "daemon/front/model/program.h"
#include "daemon/front/model/session_events.h"
#include "daemon/front/model/sessions.h"
#include "daemon/front/modules/building.h"
#include "daemon/front/requests/events.h"
#include "daemon/front/requests/job_answer.h"
#include "daemon/front/requests/requests.h"
#include "daemon/front/requests/session_end.h"
#include "daemon/front/sched/completion.h"
#include "daemon/front/sched/conclude.h"
#include "daemon/front/sched/dispatch.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/workers/record.h"
#include "proto/codec.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/recipe.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *data, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *data, size_t size);

static long left = -1; /* allocations until the one that fails; -1: none does */

static bool famine; /* all of them fail */

static bool fails(void)
{
    return famine || (left >= 0 && left-- == 0);
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *data, size_t size)
{
    return fails() ? NULL : __real_realloc(data, size);
}

#define ROUNDS 1000

/* Calls `once` with the first, second, … allocation failing until it lives through without; tells
 * how many failed. */
static unsigned each_failure(bool (*once)(void *data), void *data)
{
    for (unsigned n = 0; n < ROUNDS; n++) {
        left = (long)n;
        bool ok = once(data);
        bool reached = left < 0;
        left = -1;
        if (!reached) {
            ck_assert(ok);
            return n;
        }
    }
    ck_abort_msg("there is no end to it");
    return 0;
}

static bool resolve_once(void *data)
{
    struct recipe *r = data;
    int rc = recipe_resolve(r);
    long kept = left;
    left = -1;
    if (rc != 0) {
        ck_assert_int_eq(rc, ERR_NOMEM); /* which may be tried again */
        ck_assert_int_eq(r->e.code, rc);
        ck_assert_uint_eq(r->work.step_count + r->work.ref_count + r->work.use_count, 0);
        ck_assert_ptr_null(r->work.steps);
    }
    left = kept;
    return rc == 0;
}

START_TEST(resolving_lives_through_each)
{
    static const uint8_t bytes[256];
    struct fake *k = fake_create();
    ck_assert_int_eq(building_init(&k->f, NULL), 0);
    struct recipe r;
    recipe_init(&r, k);
    struct buffer *a = fake_buffer(k, 0, 400000, true);
    struct buffer *one = fake_buffer(k, 0, 4, true);
    struct proto_karg one_arg = {.kind = 3};
    struct kernel reported = {
        .module = k->module, .name = "spin", .entry = "spin", .args = &one_arg, .arg_count = 1};
    k->module->owner = k->session;
    reported.handle = idmap_add(&k->f.kernels, &reported);
    recipe_arg(&r, arg_buffer(a, 0, 0));
    recipe_arg(&r, arg_buffer(one, 0, 0));
    recipe_step(&r, (struct proto_step){.op = OP_LAUNCH, .kernel = recipe_kernel(k, "reduce_sum")});
    recipe_arg(&r, arg_scalar(DTYPE_F32, 0));
    recipe_arg(&r, arg_inline(ACCESS_IN, DTYPE_F32, 4, bytes_of(bytes, 16)));
    recipe_arg(&r, arg_inline(ACCESS_INOUT, DTYPE_F32, 4, bytes_of(bytes, 16)));
    recipe_step(&r, (struct proto_step){.op = OP_LAUNCH, .kernel = recipe_kernel(k, "axpy")});
    recipe_arg(&r, (struct proto_arg){.tag = ARG_STRUCT, .data = bytes_of(bytes, 200)});
    recipe_step(&r, (struct proto_step){.op = OP_LAUNCH, .kernel = reported.handle, .gx = 1});
    for (int i = 0; i < 20; i++) {
        recipe_arg(&r, arg_buffer(one, 0, 0));
        recipe_step(&r, (struct proto_step){.op = OP_READ});
    }
    ck_assert_int_eq(recipe_resolve(&r), 0);
    unsigned failed = each_failure(resolve_once, &r);
    ck_assert_uint_gt(failed, 10);
    recipe_finish(&r);
    (void)idmap_remove(&k->f.kernels, reported.handle);
    building_finish(&k->f);
    fake_destroy(k);
}
END_TEST

struct crossing {
    struct fake *k;
    struct buffer *buffer[4];
    struct job *job;
};

static bool enter_once(void *data)
{
    struct crossing *c = data;
    unsigned users = c->buffer[0]->users;
    unsigned before = 0;
    const struct hazard_group *groups = c->buffer[0]->groups;
    before = c->buffer[0]->writers;
    struct err e = ERR_INIT;
    int rc = hazard_enter(c->job, &e);
    long kept = left;
    left = -1;
    if (rc == 0) {
        hazard_leave(&c->k->f.hazards, c->job);
    } else {
        ck_assert_int_eq(rc, ERR_NOMEM);
        ck_assert_ptr_eq(c->buffer[0]->groups, groups);
        ck_assert_uint_eq(c->buffer[0]->writers, before);
    }
    ck_assert_uint_eq(c->buffer[0]->users, users);
    ck_assert_ptr_null(c->job->order.preds);
    left = kept;
    return rc == 0;
}

START_TEST(hazards_live_through_each)
{
    struct crossing c = {.k = fake_create()};
    struct job *j[3];
    for (int i = 0; i < 4; i++) {
        c.buffer[i] = fake_buffer(c.k, 0, 64, true);
    }
    for (int i = 0; i < 3; i++) {
        j[i] = fake_job(c.k, 0);
        fake_reads(j[i], c.buffer[1], 0, 64);
        fake_reads(j[i], c.buffer[2], 0, 64);
        fake_writes(j[i], c.buffer[i == 0 ? 0 : 3], 0, 64);
        (void)fake_submit(c.k, j[i]);
    }
    c.job = fake_job(c.k, 0);
    fake_reads(c.job, c.buffer[0], 0, 64);
    fake_reads(c.job, c.buffer[1], 0, 64);
    fake_writes(c.job, c.buffer[2], 0, 64);
    fake_reads(c.job, c.buffer[3], 0, 64);
    unsigned failed = each_failure(enter_once, &c);
    ck_assert_uint_ge(failed, 5);
    job_destroy(c.job);
    fake_turn(c.k);
    for (int i = 0; i < 3; i++) {
        fake_done(c.k, j[i], 0);
    }
    fake_destroy(c.k);
}
END_TEST

enum { SIDE = 5 };

/* A writer between readers leaves, the n-th allocation failing meanwhile. How many there were. */
static unsigned leave_once(long n, bool hands_back)
{
    const struct err cancelled = {.code = ERR_CANCELLED};
    struct fake *k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *before[SIDE];
    struct job *behind[SIDE];
    for (int i = 0; i < SIDE; i++) {
        before[i] = fake_job(k, 0);
        fake_reads(before[i], b, 0, 64);
        (void)fake_submit(k, before[i]);
    }
    struct job *w = fake_job(k, 0);
    fake_writes(w, b, 0, 64);
    (void)fake_submit(k, w);
    for (int i = 0; i < SIDE; i++) {
        behind[i] = fake_job(k, 0);
        fake_reads(behind[i], b, 0, 64);
        if (!hands_back && i == SIDE - 1) {
            fake_writes(behind[i], b, 0, 64);
        }
        (void)fake_submit(k, behind[i]);
    }
    left = n;
    job_conclude(&k->f, w, JOB_CANCELLED, &cancelled);
    unsigned used = (unsigned)(n - left);
    left = -1;
    for (int i = 0; i < SIDE; i++) { /* readers wait for no readers */
        ck_assert(fake_after(behind[SIDE - 1], before[i]) == !hands_back);
    }
    for (int i = 0; i < 2 * SIDE; i++) { /* those before can be found by who comes later */
        job_conclude(&k->f, i < SIDE ? behind[SIDE - 1 - i] : before[i - SIDE], JOB_CANCELLED,
                     &cancelled);
    }
    ck_assert_ptr_null(b->groups);
    fake_destroy(k);
    return used;
}

START_TEST(leaving_needs_no_memory)
{
    for (int back = 0; back < 2; back++) {
        ck_assert_uint_eq(leave_once(ROUNDS, back != 0), 0);
        ck_assert_uint_eq(leave_once(0, back != 0), 0);
    }
}
END_TEST

static bool program_once(void *data)
{
    struct recipe *r = data;
    struct program *p = NULL;
    struct err e = ERR_INIT;
    int rc = program_create(proto_list_of(&r->params, 0), proto_list_of(&r->temps, 0),
                            proto_list_of(&r->steps, r->step_count), &p, &e);
    program_unref(p);
    return rc == 0;
}

static bool result_once(void *data)
{
    struct capbuf out;
    capbuf_init(&out, 65536);
    int rc = completion_result(data, &out, NULL);
    capbuf_finish(&out);
    return rc == 0;
}

START_TEST(programs_and_results_live_through_each)
{
    struct fake *k = fake_create();
    struct recipe r;
    recipe_init(&r, k);
    recipe_step(&r, (struct proto_step){.op = OP_READ});
    ck_assert_uint_ge(each_failure(program_once, &r), 2);
    struct job *j = fake_job(k, 0);
    uint64_t offset = 0;
    ck_assert_int_eq(work_add_output(&j->work, 0, 0, 8, &offset, NULL), 0);
    j->state = JOB_DONE;
    j->output = 0;
    ck_assert_uint_ge(each_failure(result_once, j), 2);
    job_destroy(j);
    recipe_finish(&r);
    fake_destroy(k);
}
END_TEST

static bool session_once(void *data)
{
    static const uint8_t answer[OP_SMALL + 1] = {0}; /* a shorter one lies in the op */
    struct session *s = data;
    bool ok = session_result(s, 1, bytes_str("record")) && session_notice(s, 100, 1, 1);
    struct op *o = ok ? op_create_unnumbered(s, NULL) : NULL;
    if (o == NULL) {
        return false;
    }
    ok = op_answer(o, bytes_of(answer, sizeof answer));
    op_destroy(o);
    return ok;
}

START_TEST(sessions_live_through_each)
{
    struct fake *k = fake_create();
    ck_assert_uint_eq(each_failure(session_once, k->session), 4);
    fake_destroy(k);
}
END_TEST

static unsigned results_of(const struct async_result *r)
{
    unsigned count = 0;
    for (; r != NULL; r = r->next) {
        count++;
    }
    return count;
}

/* Nothing is lost when EVENTS cannot be written, or not with all in it: the next ones tell it. */
static bool tell_once(void *data)
{
    struct fake *k = data;
    struct session *s = k->session;
    uint64_t number = s->events.number;
    s->events.wait = (struct listener_slot *)k;
    session_send_events(&k->f, s, 0);
    long kept = left;
    left = -1;
    bool told = s->events.wait == NULL;
    unsigned count = results_of(s->events.sent);
    ck_assert_uint_eq(count + results_of(s->events.results), 2);
    ck_assert(told || count == 0);
    ck_assert_uint_eq(s->events.number, told ? number + 1 : number);
    struct async_result **end = &s->events.sent; /* as if nothing had been told */
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = s->events.results;
    s->events.results = s->events.sent;
    s->events.sent = NULL;
    s->events.wait = NULL;
    free(s->events.message.data);
    s->events.message.data = NULL;
    left = kept;
    return count == 2;
}

START_TEST(events_live_through_each)
{
    struct fake *k = fake_create();
    struct proto_result r = {.job = 4, .step = -1, .arg = -1};
    struct capbuf out;
    capbuf_init(&out, 4096);
    ck_assert_int_eq(proto_list_add(&schema_result, &r, &out, NULL), 0);
    ck_assert(session_result(k->session, 4, capbuf_view(&out)));
    ck_assert(session_result(k->session, 5, capbuf_view(&out)));
    ck_assert_uint_ge(each_failure(tell_once, k), 2);
    capbuf_finish(&out);
    fake_destroy(k);
}
END_TEST

/* The client waits for the end of its job: without any memory it is told of an error. */
START_TEST(an_end_is_told_without_memory)
{
    struct fake *k = fake_create();
    struct session *s = k->session;
    struct job *j = fake_job(k, 0);
    struct proto_result r;
    uint64_t offset = 0;
    ck_assert_int_eq(work_add_output(&j->work, 0, 0, 8, &offset, NULL), 0);
    j->async = true;
    j->result = async_result_reserve();
    ck_assert_ptr_nonnull(j->result);
    j->state = JOB_DONE;
    j->output = 0;
    j->id = 77;
    famine = true;
    job_answer(&k->f, j);
    famine = false;
    ck_assert_uint_eq(results_of(s->events.results), 1);
    ck_assert_uint_eq(s->events.results->job, 77);
    struct bytes record = bytes_of(s->events.results->record, s->events.results->size);
    const struct proto_list list = {.raw = record, .count = 1};
    struct proto_iter it = proto_iter_of(list);
    ck_assert(proto_list_next(&it, &schema_result, &r));
    ck_assert_int_eq(r.code, ERR_NOMEM);
    ck_assert_uint_eq(r.effects, ERR_EFFECTS_MAYBE);
    job_destroy(j);
    fake_destroy(k);
}
END_TEST

/* No end of another job will be the occasion to try again. */
START_TEST(staging_is_asked_for_again)
{
    struct fake *k = fake_create();
    struct job *j = fake_job(k, 0);
    uint64_t offset = 0;
    ck_assert_int_eq(work_add_output(&j->work, 0, 0, 8, &offset, NULL), 0);
    (void)fake_submit(k, j);
    k->f.wake_ns = NS_NEVER;
    famine = true;
    fake_turn(k);
    famine = false;
    ck_assert_int_eq(j->state, JOB_QUEUED);
    ck_assert_int_eq(j->wait, WAIT_STAGING);
    ck_assert(k->f.pressed);
    ck_assert_uint_le(k->f.wake_ns, fake_now() + 100 * NS_PER_MS);
    dispatch_all(&k->f); /* as the timer has it done */
    ck_assert_int_eq(j->state, JOB_DISPATCHED);
    fake_done(k, j, 0);
    fake_destroy(k);
}
END_TEST

/* ---- variables ------------------------------------------------------------------------------- */

#define LAUNCHES 3u

struct opening {
    struct fake *k;
    struct job *job[LAUNCHES];
    struct capbuf out;
};

static bool open_once(void *data)
{
    struct opening *o = data;
    struct request r = {.slot = NULL};
    struct request_context c = {.f = &o->k->f, .s = o->k->session, .r = &r, .out = &o->out};
    r.msg.buffer_create = (struct msg_buffer_create){.dtype = DTYPE_U8,
                                                     .ndim = 1,
                                                     .d0 = 64,
                                                     .module = o->k->module->id,
                                                     .variable = bytes_str("v")};
    int rc = request_buffer_create(&c, NULL);
    long kept = left;
    left = -1;
    const struct variable *v = o->k->module->variables;
    ck_assert(rc == 0 ? v != NULL : rc == ERR_NOMEM && v == NULL);
    for (unsigned i = 0; i < LAUNCHES; i++) {
        ck_assert_uint_eq(o->job[i]->work.use_count, rc == 0);
        if (rc != 0) { /* room is to be made again */
            free(o->job[i]->work.uses);
            o->job[i]->work.uses = NULL;
            o->job[i]->work.use_room = 0;
        }
    }
    left = kept;
    return rc == 0;
}

/* Jobs that were to come before what is done with the variable are as they were. */
START_TEST(opening_a_variable_lives_through_each)
{
    struct opening o = {.k = fake_create()};
    struct fake *k = o.k;
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        k->device[i].link = NULL; /* what is sent allocates as well, and may fail */
    }
    capbuf_init(&o.out, 4096);
    k->module->owner = k->session;
    k->module->id = idmap_add(&k->f.modules, k->module);
    (void)fake_buffer(k, 0, 64, true); /* there is a table for more */
    for (unsigned i = 0; i < LAUNCHES; i++) {
        o.job[i] = fake_job(k, 0);
        fake_launches(k, o.job[i], "x");
        (void)fake_submit(k, o.job[i]);
    }
    ck_assert_uint_ge(each_failure(open_once, &o), 2 + 2 * LAUNCHES);
    buffer_drop(&k->f, k->module->variables->buffer);
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_CANCELLED, "by the test");
    for (unsigned i = 0; i < LAUNCHES; i++) {
        job_conclude(&k->f, o.job[i], JOB_CANCELLED, &e);
    }
    capbuf_finish(&o.out);
    fake_destroy(k);
}
END_TEST

struct takeover {
    struct fake *k;
    struct buffer *b;
    struct session *s;
    uint64_t id;
};

/* With its worker the job ends, and its client hears it: it does not run again. */
static void end_untaken(struct takeover *t)
{
    struct fake *k = t->k;
    adopt_lost(&k->f, &k->device[0], "its worker was ended");
    const struct job *j = job_find(k->f.jobs, t->id);
    ck_assert_ptr_nonnull(j);
    ck_assert_int_eq(j->state, JOB_LOST);
    ck_assert_uint_eq(k->ends[t->id], 1);
    ck_assert_uint_eq(op_find(t->s, t->id)->job, t->id);
}

/* Another job of the former front, which writes the buffer. Its number is its id. */
static bool take_over_once(void *data)
{
    struct takeover *t = data;
    struct capbuf uses;
    struct capbuf out;
    struct err e = ERR_INIT;
    long kept = left;
    left = -1;
    capbuf_init(&uses, 4096);
    capbuf_init(&out, 4096);
    const struct proto_record_use use = {
        .handle = t->b->handle, .access = ACCESS_OUT, .end = t->b->bytes};
    ck_assert_int_eq(proto_list_add(&schema_record_use, &use, &uses, &e), 0);
    const struct msg_record_job m = {.client_id =
                                         bytes_of(t->s->key.client_id, sizeof t->s->key.client_id),
                                     .uid = t->s->key.uid,
                                     .tenant = bytes_str(t->s->tenant->name),
                                     .seq = ++t->id,
                                     .limit_ns = NS_PER_S,
                                     .uses = proto_list_of(&uses, 1)};
    ck_assert_int_eq(proto_encode(&schema_msg_record_job, &m, &out, &e), 0);
    const struct msg_w_inventory_job inventory = {.job = t->id};
    fake_given(t->k, 0, RECORD_JOB, t->id, capbuf_view(&out));
    left = kept;
    int rc = adopt_job(&t->k->f, &t->k->device[0], &inventory, &e);
    kept = left;
    left = -1;
    struct job *j = job_find(t->k->f.jobs, t->id);
    ck_assert(rc == 0 ? j != NULL : rc == ERR_NOMEM && j == NULL);
    ck_assert_uint_eq(t->b->writers, rc == 0);
    if (rc == 0) {
        fake_done(t->k, j, 0);
    } else {
        end_untaken(t);
    }
    capbuf_finish(&uses);
    capbuf_finish(&out);
    left = kept;
    return rc == 0;
}

/* FAULT other: a front that takes a worker over has no memory for a job that the worker has
 * required: no job runs beside it that uses the same buffers; without a place for it the worker
 *   is ended, and a job that may not run twice ends with `WORKER_LOST`
 * defence: `front/devices/adopt.c`: not_taken; `front/workers/record.c`: record_unfind
 * mutants: adopted-beside, adopted-untaken */
START_TEST(a_job_is_taken_over_with_what_it_writes)
{
    struct takeover t = {.k = fake_create()};
    t.b = fake_buffer(t.k, 0, 64, true);
    const struct session_key key = {.client_id = {7}, .uid = 1000};
    t.s = sessions_obtain(&t.k->f, &key, tenant_obtain(&t.k->f.tenants, 1000));
    ck_assert_ptr_nonnull(t.s);
    t.k->device[0].state = DEVICE_ADOPTING;
    ck_assert_uint_ge(each_failure(take_over_once, &t), 4);
    session_end(&t.k->f, t.s);
    fake_destroy(t.k);
}
END_TEST

/* A job of a worker that has ended, which wrote outside itself. */
static bool depart_once(void *data)
{
    struct fake *k = data;
    struct device *d = &k->device[0];
    const struct session_key key = {.client_id = {7}, .uid = 1000};
    struct capbuf out;
    long kept = left;
    left = -1;
    capbuf_init(&out, 4096);
    const struct msg_record_job m = {.client_id = bytes_of(key.client_id, sizeof key.client_id),
                                     .uid = key.uid,
                                     .tenant = bytes_str(k->tenant->name),
                                     .seq = 9};
    ck_assert_int_eq(proto_encode(&schema_msg_record_job, &m, &out, NULL), 0);
    fake_given(k, 0, RECORD_JOB, 1, capbuf_view(&out));
    left = kept;
    adopt_lost(&k->f, d, "its worker was ended");
    kept = left;
    left = -1;
    struct job *j = job_find(k->f.jobs, 1);
    struct session *s = session_find(k->f.sessions, &key);
    bool told = s != NULL && op_find(s, 9) != NULL && k->state[1] == JOB_LOST;
    ck_assert_int_ne(told, k->f.unadopted);
    ck_assert_uint_gt(record_used(d->record), 0); /* for the next front */
    if (j != NULL && !job_ended(j)) {
        completion_departed(&k->f, j, "its worker was ended");
    }
    if (s != NULL) {
        session_end(&k->f, s);
    }
    capbuf_finish(&out);
    fake_destroy(k);
    left = kept;
    return told;
}

/* In a front of its own each time. */
static bool depart(void *data)
{
    long kept = left;
    (void)data;
    left = -1;
    struct fake *k = fake_create();
    left = kept;
    return depart_once(k);
}

/* FAULT other: a new front has no memory for a job that ran under the former one
 * required: the start fails and the next one tries again: the job does not run twice
 * defence: `front/devices/adopt.c`: lacks_memory; `front/pipeline_start.c`: adopt_all
 * also: `front_inventory_test`: jobs_of_an_unknown_device_are_lost; `front_sim`
 * mutants: unadopted-departed, unadopted-owner, unadopted-answer, unknown-worker */
START_TEST(a_departed_job_is_told_or_the_front_does_not_serve)
{
    ck_assert_uint_ge(each_failure(depart, NULL), 4);
}
END_TEST

SUITE_MAIN("alloc", resolving_lives_through_each, hazards_live_through_each,
           leaving_needs_no_memory, programs_and_results_live_through_each,
           sessions_live_through_each, events_live_through_each, an_end_is_told_without_memory,
           staging_is_asked_for_again, opening_a_variable_lives_through_each,
           a_job_is_taken_over_with_what_it_writes,
           a_departed_job_is_told_or_the_front_does_not_serve)
