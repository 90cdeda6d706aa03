#include "tests/unit/front/fake_front.h"
#include "daemon/front/model/sessions.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "daemon/front/devices/discover.h"
#include "daemon/front/devices/draining.h"
#include "daemon/front/memory/buffers.h"
#include "daemon/front/memory/moves.h"
#include "daemon/front/memory/settle.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/requests/events.h"
#include "daemon/front/sched/completion.h"
#include "daemon/front/sched/conclude.h"
#include "daemon/front/sched/dispatch.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/sched/history.h"
#include "daemon/front/sched/queue.h"
#include "daemon/front/sched/shares.h"
#include "daemon/front/tenants/tenant_quota.h"
#include "daemon/front/views/table_query.h"
#include "daemon/front/workers/worker.h"

static uint64_t now_ns;

uint64_t fake_now(void)
{
    return now_ns;
}

void fake_pass(uint64_t ns)
{
    now_ns += ns;
}

static struct fake *fake_of(struct front *f)
{
    return (struct fake *)f;
}

static void on_kick(struct front *f)
{
    fake_of(f)->kicked = true;
}

static void on_ended(struct front *f, struct job *j)
{
    struct fake *k = fake_of(f);
    k->ends[j->id]++;
    k->state[j->id] = j->state;
    k->error[j->id] = j->error;
}

static void on_answered(struct front *f, struct job *j)
{
    struct fake *k = fake_of(f);
    k->answers[j->id]++;
    k->error[j->id] = j->error;
}

static void on_ready(struct front *f, struct device *d)
{
    (void)d;
    fake_of(f)->readies++;
}

static void on_added(struct front *f)
{
    (void)f;
}

static void on_need(struct front *f, struct module *m, struct device *d)
{
    (void)m;
    (void)d;
    fake_of(f)->needed++;
}

/* ---- the world: nothing is sent, started or compiled -------------------------------------- */

static void no_reply(struct listener *l, struct listener_slot *slot, struct bytes message)
{
    (void)l;
    (void)slot;
    (void)message;
}

static void no_drop(struct listener *l, struct listener_slot *slot)
{
    (void)l;
    (void)slot;
}

static void no_pipe(struct listener *l, uint32_t pipe)
{
    (void)l;
    (void)pipe;
}

int fake_send(struct link *l, const struct schema *schema, const void *msg,
              const struct frame_fds *fds, struct err *e)
{
    struct device *d = (struct device *)l;
    struct fake *k = fake_of(d->front);
    (void)fds;
    (void)e;
    if (schema == &schema_msg_f_job && k->sent < FAKE_JOBS) {
        k->order[k->sent++] = ((const struct msg_f_job *)msg)->job;
    }
    if (schema == &schema_msg_f_buffer_free) {
        struct buffer *b = idmap_get(&k->f.buffers, ((const struct msg_f_buffer_free *)msg)->id);
        bool left = b != NULL && b->device != d->index; /* it has moved to another device */
        ck_assert(b == NULL || left || b->users == 0);
    }
    k->frames[schema->kind]++;
    return 0;
}

static bool never(const struct link *l)
{
    (void)l;
    return false;
}

static bool never_seen(const struct device *d, struct thread_look *ret_look)
{
    (void)d;
    (void)ret_look;
    return false;
}

static int no_name(struct launcher_link *l, uint64_t id, struct bytes device, struct err *e)
{
    (void)l;
    (void)id;
    (void)device;
    (void)e;
    return 0;
}

static int no_worker(struct launcher_link *l, const struct worker_order *w, struct err *e)
{
    (void)l;
    (void)w;
    (void)e;
    return 0;
}

static int no_monitor(struct launcher_link *l, uint64_t id, int page, struct err *e)
{
    (void)l;
    (void)id;
    (void)page;
    (void)e;
    return 0;
}

static int no_kill(struct launcher_link *l, uint64_t id, int signal, struct err *e)
{
    (void)l;
    (void)id;
    (void)signal;
    (void)e;
    return 0;
}

static unsigned copies;

unsigned fake_copies(void)
{
    return copies;
}

static int fake_keep(struct launcher_link *l, uint64_t id, uint64_t worker, int fd, struct err *e)
{
    (void)l;
    (void)id;
    (void)worker;
    (void)e;
    ck_assert_int_ge(fd, 0);
    copies++;
    return 0;
}

static int fake_release(struct launcher_link *l, uint64_t id, struct err *e)
{
    (void)l;
    (void)id;
    (void)e;
    copies--;
    return 0;
}

static struct fake *current; /* the last one that was created */

static int none_wait(struct launcher_link *l, uint64_t id, struct bytes device, struct err *e)
{
    (void)l;
    (void)device;
    (void)e;
    draining_vacated(&current->f, id, 0);
    return 0;
}

static const struct front_io fake_io = {
    .now_ns = fake_now,
    .reply = no_reply,
    .drop = no_drop,
    .identified = no_pipe,
    .close_pipe = no_pipe,
    .send = fake_send,
    .pressed = never,
    .unread = never,
    .look = never_seen,
    .start_worker = no_worker,
    .name_worker = no_name,
    .start_monitor = no_monitor,
    .kill = no_kill,
    .keep = fake_keep,
    .release = fake_release,
    .vacate = none_wait,
    .compile = NULL, /* a test that compiles has a compiler */
};

static void device_make(struct fake *k, unsigned i)
{
    struct device *d = &k->device[i];
    d->front = &k->f;
    d->index = i;
    d->state = DEVICE_READY;
    d->link = (struct link *)d; /* only its presence counts: nothing is sent */
    d->epoch = 1;
    d->streams = 2;
    d->memory = UINT64_C(1) << 30;
    (void)strcpy(d->backend, "sim");
    (void)strcpy(d->arch, "any");
    ck_assert_int_eq(device_staging_create(d, FAKE_STAGING, FAKE_STAGING, NULL), 0);
    ck_assert_int_eq(record_create(++k->epoch, &d->record, NULL), 0);
    k->f.device[i] = d;
}

struct fake *fake_create(void)
{
    struct fake *k = calloc(1, sizeof *k);
    ck_assert_ptr_nonnull(k);
    current = k;
    now_ns = FAKE_BEGIN_NS;
    config_defaults(&k->f.config);
    k->f.config.window = 4;
    k->f.rules.others = TENANT_UNLIMITED;
    k->f.rights.admins.group = k->f.rights.loaders.group = UINT32_MAX;
    k->f.next_job = 1;
    k->f.awake_ns = NS_NEVER; /* it never stands still */
    k->f.next_session = 1;
    k->f.build = "test";
    k->f.device_count = FAKE_DEVICES;
    k->f.hooks = (struct front_hooks){.kick = on_kick,
                                      .worker_takes = buffer_device_ready,
                                      .job_ended = on_ended,
                                      .job_answered = on_answered,
                                      .job_left = memory_job_left,
                                      .job_answer_early = job_answer_early,
                                      .job_late = job_late,
                                      .entry_removed = table_queries_skip,
                                      .module_need = on_need,
                                      .buffer_need = move_need,
                                      .module_settled = buffer_module_settled,
                                      .worker_ready = on_ready,
                                      .guarantees_retry = quota_retry,
                                      .worker_tenant = quota_reported,
                                      .worker_tenant_refused = quota_refused,
                                      .worker_budget = quota_budget,
                                      .device_given_up = discover_given_up,
                                      .device_added = on_added,
                                      .sessions_notify = sessions_send_events};
    k->f.io = fake_io;
    k->f.copies_max = 4096;
    copies = 0;
    idmap_init(&k->f.buffers, 1024, 1);
    idmap_init(&k->f.arenas, 64, 1);
    idmap_init(&k->f.programs, 64, 1);
    idmap_init(&k->f.modules, 64, 1);
    idmap_init(&k->f.kernels, 256, 1);
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        device_make(k, i);
    }
    k->tenant = tenant_obtain(&k->f.tenants, 1000);
    struct session_key key;
    memset(&key, 0, sizeof key);
    k->session = session_create(&key, k->tenant, 1);
    k->module = calloc(1, sizeof *k->module);
    ck_assert(k->tenant != NULL && k->session != NULL && k->module != NULL);
    k->module->tenant = k->tenant;
    k->module->hash = hash_of("source", 6);
    memset(&k->module->loaded, 0xff, sizeof k->module->loaded);
    return k;
}

void fake_destroy(struct fake *k)
{
    ck_assert_uint_eq(k->f.job_count, 0);
    ck_assert_uint_eq(k->f.queued_count, 0);
    ck_assert_uint_eq(k->f.any_ready, 0);
    ck_assert_ptr_null(k->f.hazards.unchecked);
    ck_assert_ptr_null(k->f.leaving);
    struct job *j;
    struct job *next;
    HASH_ITER(hh, k->f.jobs, j, next)
    {
        job_release(&k->f, j); /* every answer was taken */
    }
    job_forget_history(&k->f, 0);
    ck_assert_ptr_null(k->f.jobs);
    ck_assert_uint_eq(k->f.kept_count, 0);
    uint32_t cursor = 0;
    struct buffer *b;
    while ((b = idmap_next(&k->f.buffers, &cursor, NULL)) != NULL) {
        ck_assert_uint_eq(b->users, 0);
        ck_assert_uint_eq(b->writers, 0);
        ck_assert_ptr_null(b->groups);
        buffer_destroy(b);
    }
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        struct device *d = &k->device[i];
        ck_assert_ptr_null(d->inflight);
        ck_assert_uint_eq(d->line.bound, 0);
        ck_assert_uint_eq(d->line.streams, 0);
        ck_assert_uint_eq(d->inflight_count, 0);
        ck_assert_uint_eq(d->stream_load[0] + d->stream_load[1], 0);
        ck_assert_uint_eq(d->input_range.used, 0);
        ck_assert_uint_eq(d->output_range.used, 0);
        worker_forget(d);
    }
    if (k->session != NULL) {
        ck_assert_uint_eq(k->session->jobs, 0);
        session_destroy(k->session);
    }
    ck_assert_uint_eq(k->module->users, 0);
    module_destroy(k->module);
    idmap_finish(&k->f.buffers);
    idmap_finish(&k->f.arenas);
    idmap_finish(&k->f.programs);
    idmap_finish(&k->f.modules);
    idmap_finish(&k->f.kernels);
    tenant_destroy_all(&k->f.tenants);
    tenant_destroy_all(&k->f.spare);
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        line_finish(&k->device[i].line);
    }
    free(k);
}

struct buffer *fake_buffer(struct fake *k, unsigned device, uint64_t bytes, bool defined)
{
    struct buffer *b = calloc(1, sizeof *b);
    ck_assert_ptr_nonnull(b);
    b->losses = &k->device[device].losses;
    buffer_set_state(b, BUFFER_LIVE);
    b->shape = (struct shape){.dtype = DTYPE_F32, .ndim = 1, .dim = {bytes / 4}};
    b->bytes = bytes;
    b->tenant = k->tenant;
    b->device = device;
    b->host_fd = -1;
    b->linger_until_ns = NS_NEVER;
    b->handle = idmap_add(&k->f.buffers, b);
    ck_assert_uint_ne(b->handle, 0);
    b->tenant->held[TENANT_BUFFERS]++;
    if (defined) {
        spans_add(&b->defined, 0, bytes);
    }
    return b;
}

struct buffer *fake_movable(struct fake *k, const struct device *d)
{
    struct buffer *b = fake_buffer(k, 0, 64, true);
    b->device = d->index;
    b->losses = &k->f.device[d->index]->losses;
    b->export_fd = -1;
    return b;
}

void fake_drop(struct fake *k, struct buffer *b)
{
    b->freed = true;
    buffer_settle(&k->f, b);
}

struct job *fake_job(struct fake *k, int device)
{
    struct job *j = calloc(1, sizeof *j);
    ck_assert_ptr_nonnull(j);
    j->error = ERR_INIT;
    j->input = RANGE_NONE;
    j->output = RANGE_NONE;
    j->deadline_ns = NS_NEVER;
    j->limit_ns = NS_PER_S;
    j->tenant = k->tenant;
    j->session = k->session;
    work_init(&j->work);
    j->work.device = device;
    j->device = device >= 0 ? &k->device[device] : NULL;
    j->sched.rank = job_rank(j);
    return j;
}

void fake_reads(struct job *j, struct buffer *b, uint64_t begin, uint64_t end)
{
    struct work_use *u = work_use_of(&j->work, b);
    u->access |= ACCESS_IN;
    u->reads_before_write = true;
    u->read_begin = begin;
    u->read_end = end;
}

void fake_writes(struct job *j, struct buffer *b, uint64_t begin, uint64_t end)
{
    struct work_use *u = work_use_of(&j->work, b);
    u->access |= ACCESS_OUT;
    u->write_begin = begin;
    u->write_end = end;
    u->part_count = 0;
    span_add(u->part, &u->part_count, WORK_PARTS, begin, end);
}

void fake_launches(struct fake *k, struct job *j, const char *entry)
{
    struct work_step *s = work_add_step(&j->work, OP_LAUNCH, 0, NULL);
    s->module = k->module;
    (void)snprintf(s->entry, sizeof s->entry, "%s", entry);
    ck_assert_int_eq(work_add_module(&j->work, k->module, NULL), 0);
}

uint64_t fake_submit(struct fake *k, struct job *j)
{
    struct front *f = &k->f;
    struct err e = ERR_INIT;
    j->id = f->next_job++;
    ck_assert_uint_lt(j->id, FAKE_JOBS);
    ck_assert_int_eq(hazard_enter(j, &e), 0);
    job_put(&f->jobs, j);
    f->job_count++;
    f->queued_count++;
    if (j->tenant != NULL) {
        j->tenant->held[TENANT_JOBS]++;
    }
    job_join(j, j->session);
    for (unsigned i = 0; i < j->work.module_count; i++) {
        j->work.modules[i]->users++;
    }
    ck_assert(j->tenant == NULL || shares_reserve(f, j->tenant, j));
    wake_for_job(f, j);
    queue_offer(f, j);
    return j->id;
}

void fake_turn(struct fake *k)
{
    while (k->kicked) {
        k->kicked = false;
        dispatch_all(&k->f);
    }
}

static void done_with(struct fake *k, struct job *j, int code, int effects)
{
    struct msg_w_done m = {
        .job = j->id, .code = code, .step = -1, .arg = -1, .effects = (uint64_t)effects};
    completion_done(&k->f, j->device, &m);
}

/* The record as the next front finds it. */
static struct record *adopted(struct fake *k, unsigned device)
{
    struct record *r = NULL;
    int fd = fcntl(record_fd(k->device[device].record), F_DUPFD_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(record_adopt(++k->epoch, fd, &r, NULL), 0);
    return r;
}

void fake_given(struct fake *k, unsigned device, enum record_kind kind, uint64_t id,
                struct bytes meta)
{
    struct device *d = &k->device[device];
    struct record *before = d->record;
    ck_assert_uint_ne(record_put(before, 0, kind, id, meta), 0);
    d->record = adopted(k, device);
    record_destroy(before);
}

bool fake_tainted(struct fake *k, const struct job *j)
{
    struct record *r = adopted(k, j->device->index);
    struct record_view view;
    bool again = false;
    ck_assert(record_find(r, RECORD_JOB, j->id, &view, &again));
    record_destroy(r);
    return view.tainted;
}

static bool recorded(struct fake *k, unsigned device, enum record_kind kind, uint64_t id,
                     struct msg_record_buffer *ret_m)
{
    struct record *r = adopted(k, device);
    struct record_view view = {.staging_reused = false};
    bool again = false;
    bool found = record_find(r, kind, id, &view, &again);
    if (found && ret_m != NULL) {
        ck_assert_int_eq(proto_decode(&schema_msg_record_buffer, view.bytes, ret_m, NULL), 0);
    }
    record_destroy(r);
    return kind == RECORD_JOB ? view.staging_reused : found;
}

struct fake_recorded fake_recorded(struct fake *k, const struct buffer *b)
{
    struct msg_record_buffer m = {.seq = 0};
    bool found = recorded(k, b->device, RECORD_BUFFER, b->handle, &m);
    return (struct fake_recorded){
        .found = found, .defined = m.defined != 0, .left = m.left != 0, .freed_by = m.freed};
}

bool fake_outputs_lost(struct fake *k, unsigned device, uint64_t job)
{
    return recorded(k, device, RECORD_JOB, job, NULL);
}

void fake_done(struct fake *k, struct job *j, int code)
{
    done_with(k, j, code,
              code == 0 || code == ERR_CANCELLED ? ERR_EFFECTS_NONE : ERR_EFFECTS_MAYBE);
}

void fake_refused(struct fake *k, struct job *j, int code)
{
    done_with(k, j, code, ERR_EFFECTS_NONE);
}

void fake_lose(struct fake *k, unsigned device, bool external)
{
    struct device *d = &k->device[device];
    completion_lost(&k->f, d, external, "the worker ended");
    d->culprit = NULL;
    d->lost = false;
    d->epoch++;
    on_kick(&k->f);
}

bool fake_after(const struct job *succ, const struct job *pred)
{
    struct hazard_preds preds;
    ck_assert(hazard_preds(succ, &preds));
    for (unsigned i = 0; i < preds.count; i++) {
        if (preds.job[i] == pred || fake_after(preds.job[i], pred)) {
            return true;
        }
    }
    return false;
}

struct job *fake_find(struct fake *k, uint64_t id)
{
    return job_find(k->f.jobs, id);
}
