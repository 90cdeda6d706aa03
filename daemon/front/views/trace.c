#include "daemon/front/views/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/clock.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/views/table_view.h"

#define TRACE_NAME 64u

enum trace_kind { TRACE_JOB, TRACE_STEP, TRACE_AFTER, TRACE_KINDS };

struct trace_record {
    enum trace_kind kind;
    int device;     /* -1: none */
    unsigned state; /* enum job_state */
    uint64_t job;
    uint64_t other; /* STEP: its number; AFTER: the job before it */
    uint64_t session;
    uint64_t stream, job_class;
    uint64_t submitted_ns, dispatched_ns, begin_ns, end_ns;
    uint64_t to_device, from_device;
    char name[TRACE_NAME + 1]; /* JOB: its label; STEP: what it does */
    char by[TRACE_NAME + 1];   /* JOB: its tenant; STEP: the implementation */
};

struct trace {
    const struct session *session;
    bool admin;
    struct trace_record *record; /* owned ring */
    unsigned first, count;
    uint64_t lost;    /* records for which there was no room */
    uint64_t read_ns; /* when it was last read */
    struct trace *prev, *next;
};

/* ---- recording ------------------------------------------------------------------------------- */

static void keep(struct front *f, const struct job *j, const struct trace_record *r)
{
    for (struct trace *t = f->traces; t != NULL; t = t->next) {
        if (!rights_sees(&f->rights, t->session, j->tenant)) {
            continue;
        }
        if (t->count == TRACE_RECORDS) {
            t->lost++;
            continue;
        }
        t->record[(t->first + t->count++) % TRACE_RECORDS] = *r;
    }
}

void trace_admitted(struct front *f, const struct job *j)
{
    struct hazard_preds preds;
    (void)hazard_preds(j, &preds); /* if there are more than fit, the first ones have to do */
    turn_count(f, preds.count);
    for (unsigned i = 0; i < preds.count; i++) {
        if (preds.job[i]->tenant == j->tenant) {
            struct trace_record r = {
                .kind = TRACE_AFTER, .device = -1, .job = j->id, .other = preds.job[i]->id};
            keep(f, j, &r);
        }
    }
}

static bool is_code(const struct work_step *s)
{
    return s->op == OP_LAUNCH || s->op == FRAME_OP_LIBRARY;
}

/* A step of the user's program is several steps of the work: a launch with arrays of the host
 * begins and ends with copies. The first one that runs code names it. NULL: adopted jobs have no
 * steps. */
static const struct work_step *step_of(const struct job *j, uint64_t step)
{
    const struct work_step *first = NULL;
    for (unsigned i = 0; i < j->work.step_count; i++) {
        const struct work_step *s = &j->work.steps[i];
        if (s->step == step && is_code(s)) {
            return s;
        }
        first = first == NULL && s->step == step ? s : first;
    }
    return first;
}

static void name_step(const struct job *j, uint64_t step, char out[TRACE_NAME + 1])
{
    const struct work_step *s = step_of(j, step);
    if (s == NULL) {
        (void)snprintf(out, TRACE_NAME + 1, "step %llu", (unsigned long long)step);
    } else {
        (void)snprintf(out, TRACE_NAME + 1, "%s", is_code(s) ? s->entry : work_op_name(s->op));
    }
}

/* Times of steps count from the begin of their job. */
static void keep_steps(struct front *f, const struct job *j)
{
    struct trace_record r = {.kind = TRACE_STEP, .job = j->id, .device = -1};
    for (unsigned i = 0; i < j->timing_count && i < TRACE_STEPS; i++) {
        const struct timing *t = &j->timings[i];
        r.other = t->step;
        r.begin_ns = ns_add(j->started_ns, t->begin_ns);
        r.end_ns = ns_add(j->started_ns, t->end_ns);
        (void)snprintf(r.by, sizeof r.by, "%s", t->by);
        name_step(j, t->step, r.name);
        keep(f, j, &r);
        turn_count(f, 1);
    }
}

void trace_ended(struct front *f, const struct job *j)
{
    struct trace_record r = {.kind = TRACE_JOB,
                             .device = j->device != NULL ? (int)device_shown(j->device) : -1,
                             .state = j->state,
                             .job = j->id,
                             .session = j->session_id,
                             .stream = j->stream,
                             .job_class = j->job_class,
                             .submitted_ns = j->submitted_ns,
                             .dispatched_ns = j->dispatched_ns,
                             .begin_ns = j->started_ns,
                             .end_ns = j->ended_ns,
                             .to_device = j->to_device,
                             .from_device = j->from_device};
    (void)snprintf(r.name, sizeof r.name, "%s", j->label);
    (void)snprintf(r.by, sizeof r.by, "%s", j->tenant != NULL ? j->tenant->name : "gpud");
    keep(f, j, &r);
    keep_steps(f, j);
}

/* ---- recordings ------------------------------------------------------------------------------ */

static struct trace *trace_of(const struct front *f, const struct session *s)
{
    struct trace *t = f->traces;
    while (t != NULL && t->session != s) {
        t = t->next;
    }
    return t;
}

static void trace_destroy(struct front *f, struct trace *t)
{
    DL_DELETE(f->traces, t);
    f->watchers--;
    free(t->record);
    free(t);
}

/* Limits: each recording costs the front memory, and time at the end of each job. */
static int check_room(const struct front *f, const struct session *s, bool admin, struct err *e)
{
    unsigned all = 0;
    unsigned own = 0;
    for (const struct trace *t = f->traces; t != NULL; t = t->next) {
        all += !t->admin;
        own += admin ? t->admin : !t->admin && t->session->tenant == s->tenant;
    }
    if (own < TRACES_TENANT && (admin || all < TRACES_MAX)) {
        return 0;
    }
    return err_set(e, ERR_BUSY,
                   "%u recordings are under way, at most %u of a tenant and %u in all: try again "
                   "after one of them",
                   admin ? own : all, TRACES_TENANT, TRACES_MAX);
}

static struct trace *trace_create(struct front *f, const struct session *s, struct err *e)
{
    bool admin = rights_admin(&f->rights, s);
    if (check_room(f, s, admin, e) != 0) {
        return NULL;
    }
    struct trace *t = calloc(1, sizeof *t);
    struct trace_record *record = calloc(TRACE_RECORDS, sizeof *record);
    if (t == NULL || record == NULL) {
        free(t);
        free(record);
        (void)err_set(e, ERR_NOMEM, "no memory for a recording");
        return NULL;
    }
    t->session = s;
    t->admin = admin;
    t->record = record;
    DL_APPEND(f->traces, t);
    f->watchers++;
    return t;
}

void trace_session_ended(struct front *f, const struct session *s)
{
    struct trace *t = trace_of(f, s);
    if (t != NULL) {
        trace_destroy(f, t);
    }
}

void trace_watch(struct front *f, uint64_t now_ns)
{
    struct trace *t;
    struct trace *next;
    DL_FOREACH_SAFE(f->traces, t, next)
    {
        uint64_t until_ns = ns_add(t->read_ns, TRACE_IDLE_NS);
        if (now_ns >= until_ns) {
            trace_destroy(f, t);
        } else {
            wake_at(f, until_ns);
        }
    }
}

void trace_finish_all(struct front *f)
{
    while (f->traces != NULL) {
        trace_destroy(f, f->traces);
    }
}

/* ---- the table ------------------------------------------------------------------------------- */

/* The first row, `clock`, has both clocks, and in `other` how many records were lost. `by` of a job
 * is its tenant. */
#define TRACE_COLUMNS(COLUMN, WIDE)                                                                \
    COLUMN(event, TEXT, names[r->kind])                                                            \
    COLUMN(job, UINT, r->job)                                                                      \
    COLUMN(other, UINT, r->other)                                                                  \
    COLUMN(name, TEXT, r->name)                                                                    \
    COLUMN(by, TEXT, r->by)                                                                        \
    COLUMN(session, UINT, r->session)                                                              \
    COLUMN(class, TEXT, r->kind == TRACE_JOB ? tenant_classes[r->job_class] : "")                  \
    COLUMN(state, TEXT, r->kind == TRACE_JOB ? job_state_name(r->state) : "")                      \
    COLUMN(device, UINT, table_known(r->device >= 0, (uint64_t)r->device))                         \
    COLUMN(stream, UINT, r->stream)                                                                \
    COLUMN(submitted, NS, r->submitted_ns)                                                         \
    COLUMN(dispatched, NS, r->dispatched_ns)                                                       \
    COLUMN(begin, NS, r->begin_ns)                                                                 \
    COLUMN(end, NS, r->end_ns)                                                                     \
    COLUMN(to_device, BYTES, r->to_device)                                                         \
    COLUMN(from_device, BYTES, r->from_device)

static void trace_row(struct table_query *q, const struct trace_record *r)
{
    static const char *const names[TRACE_KINDS + 1] = {[TRACE_JOB] = "job",
                                                       [TRACE_STEP] = "step",
                                                       [TRACE_AFTER] = "after",
                                                       [TRACE_KINDS] = "clock"};
    struct table *t = &q->table;
    TABLE_ROW(TRACE_COLUMNS);
}

static void trace_begin(struct table_query *q)
{
    struct table *t = &q->table;
    struct trace *own = trace_of(q->f, q->s);
    own = own != NULL ? own : trace_create(q->f, q->s, &t->error);
    TABLE_HEADER(TRACE_COLUMNS);
    q->cursor = 0;
    if (own == NULL) {
        return;
    }
    own->read_ns = front_now(q->f);
    wake_at(q->f, ns_add(own->read_ns, TRACE_IDLE_NS));
    q->cursor = own->count < TRACE_TABLE_ROWS ? own->count : TRACE_TABLE_ROWS;
    struct trace_record clock = {.kind = TRACE_KINDS,
                                 .device = -1,
                                 .other = own->lost,
                                 .begin_ns = own->read_ns,
                                 .end_ns = clock_wall_ns()};
    trace_row(q, &clock);
}

/* The recording may have ended since the turn before. */
static bool trace_next(struct table_query *q)
{
    struct trace *own = trace_of(q->f, q->s);
    if (q->cursor == 0 || own == NULL || own->count == 0) {
        return false;
    }
    turn_count(q->f, TABLE_ROW_UNITS);
    trace_row(q, &own->record[own->first]);
    own->first = (own->first + 1) % TRACE_RECORDS;
    own->count--;
    q->cursor--;
    return true;
}

const struct table_view view_trace = {"trace", trace_begin, trace_next, false};
