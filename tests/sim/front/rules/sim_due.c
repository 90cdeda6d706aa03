/* Deadlines: a job begins by its own or not at all, and the refusal of one says when it would have
 * begun. No job is refused that a device without work would begin at once. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/saturate.h"
#include "daemon/front/model/domain.h"
#include "daemon/front/model/job.h"
#include "daemon/front/model/session.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/sched/outlook.h"
#include "tests/sim/front/rules/sim_told.h"
#include "tests/sim/front/sim.h"

#define MARGIN  (1.0 / 8) /* as predict.c adds to a wait */
#define TEXT    512u
#define KNOWN   8u              /* jobs of a kind, after which their time is known */
#define LATE_NS NS_PER_MS       /* turns of the loop */
#define WAY_NS  (NS_PER_MS / 2) /* that a buffer takes to another device at least */
#define LATEST  1.25            /* of the time until a deadline: waits are estimates */

#define ADMITTED_MOST 4096u

/* ---- refusals -------------------------------------------------------------------------------- */

static struct tenant *tenant_of(const struct sim *s, const struct sim_client *c)
{
    for (const struct session *x = s->f->sessions; x != NULL; x = x->hh.next) {
        if (x->id == c->session) {
            return x->tenant;
        }
    }
    return NULL;
}

/* The device that the job has to run on, from 0; UINT_MAX: any. *ret_used: it waits for others. */
static unsigned bound_to(const struct sim *s, const struct sim_request *q, bool *ret_used)
{
    struct msg_submit m;
    unsigned device = UINT32_MAX;
    bool named =
        proto_decode(&schema_msg_submit, bytes_of(q->data, q->size), &m, NULL) == 0 && m.device > 0;
    *ret_used = false;
    for (unsigned i = 0; i < q->job->steps; i++) {
        const struct sim_step *t = &q->job->step[i];
        const struct sim_buffer *at = t->from != NULL ? t->from : t->to;
        const struct buffer *b = at != NULL ? idmap_get(&s->f->buffers, at->handle) : NULL;
        if (b != NULL && s->f->device[b->device] != NULL) {
            device = device_shown(s->f->device[b->device]);
            *ret_used = *ret_used || b->users > 0;
        }
    }
    return named ? (unsigned)m.device - 1 : device;
}

/* No worker of the device has anything to do. */
static bool has_nothing(const struct device *base)
{
    bool busy = base->inflight_count > 0 || base->line.bound > 0;
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        busy = busy || d->inflight_count > 0;
    }
    return !busy;
}

static void check_needed(struct sim *s, const struct sim_request *q, const char *text)
{
    const struct tenant *t = tenant_of(s, q->client);
    bool used = false;
    unsigned only = bound_to(s, q, &used);
    if (used || strstr(text, "as its buffers need ") != NULL) {
        return; /* the device waits for these, or for the jobs before it */
    }
    for (unsigned i = 0; t != NULL && s->f->any_ready == 0 && i < s->f->device_count; i++) {
        struct device *base = s->f->device[i];
        const struct device *d = domain_of(t, base);
        bool may = (only == UINT32_MAX || only == i) && tenant_may_use(t, i);
        if (may && d != NULL && device_serves(d) && has_nothing(base)) {
            sim_fail(s,
                     "due: request %" PRIu64 " of client %u is refused, and device %u has nothing "
                     "to do: %s",
                     q->seq, q->client->index, i, text);
        }
    }
}

/* Jobs of the tenant that a worker has begun: a time is known after 8 of a kind. */
static void check_known(struct sim *s, const struct sim_request *q, const char *text)
{
    unsigned begun = 0;
    for (unsigned i = 0; i < s->jobs; i++) {
        begun += s->job[i]->client->tenant == q->client->tenant && s->job[i]->begun > 0;
    }
    if (begun < KNOWN) {
        sim_fail(s,
                 "due: request %" PRIu64 " of client %u is refused after %u jobs of its tenant, of "
                 "which no time can be known: %s",
                 q->seq, q->client->index, begun, text);
    }
}

static void check_refusal(struct sim *s, const struct sim_parcel *p, const char *text)
{
    static const char first[] = "it would begin in about %lf ms and end in about %lf ms, its "
                                "deadline to begin is in %lf ms";
    struct sim_request *q = p->request;
    double begin = 0;
    double end = 0;
    double due = 0;
    const char *at = strstr(text, "it would ");
    if (strstr(text, "while it waited for room") != NULL) {
        return;
    }
    if (at != NULL && sscanf(at, first, &begin, &end, &due) == 3) {
        if (end < begin || begin * (1 + MARGIN) < due - 0.002) {
            sim_fail(s, "due: request %" PRIu64 " of client %u is refused without need: %s", q->seq,
                     q->client->index, text);
        }
    } else if (at == NULL ||
               sscanf(at, "it would take %lf ms before jobs of its tenant", &end) != 1) {
        sim_fail(s, "due: request %" PRIu64 " of client %u is refused, and no time is named: %s",
                 q->seq, q->client->index, text);
    }
    if (q->job->begun > 0 && q->sent_era == s->era) {
        sim_fail(s, "due: request %" PRIu64 " of client %u is refused, and its job ran", q->seq,
                 q->client->index);
    }
    check_known(s, q, text);
    q->job->refused_era = s->era;
    told_refused(s, q->job, text);
    if (p == s->asked && q->sendings == 1) {
        check_needed(s, q, text);
    }
}

/* ---- admissions ------------------------------------------------------------------------------ */

/* Does a job that it waits for leave the buffer on another device? */
static bool comes_from_afar(const struct job *j, const struct work_use *u)
{
    const struct buffer_use *before = u->entry != NULL ? hazard_before(u->entry) : NULL;
    return before != NULL && before->job->device != NULL && before->job->device != j->device &&
           (u->buffer->flags & BUFFER_FLAG_VARIABLE) == 0;
}

/* The least that the buffers of the job take from the jobs before it. */
static uint64_t least_way_ns(const struct job *j)
{
    bool any = false;
    for (unsigned i = 0; i < j->work.use_count && j->device != NULL && !any; i++) {
        any = comes_from_afar(j, &j->work.uses[i]);
    }
    return any ? WAY_NS : 0;
}

/* What is told of a new job is after what is told of the jobs that it waits for, and after the way
 * of a buffer that one of these has on another device. */
static void check_behind(struct sim *s, const struct job *j)
{
    struct hazard_preds preds;
    struct prediction p = outlook_of(s->f, j);
    if (p.begin_ns == 0 || j->state != JOB_QUEUED || hazard_clear(j)) {
        return;
    }
    (void)hazard_preds(j, &preds);
    for (unsigned i = 0; i < preds.count; i++) {
        struct prediction before = outlook_of(s->f, preds.job[i]);
        if (before.end_ns == 0 || before.end_ns + least_way_ns(j) > p.begin_ns) {
            sim_fail(s,
                     "due: job %" PRIu64 " is to begin in %" PRIu64 " us, and job %" PRIu64
                     ", which it waits for, is to end in %" PRIu64 " us (0: unknown)",
                     j->id, sat_sub(p.begin_ns, s->now_ns) / NS_PER_US, preds.job[i]->id,
                     sat_sub(before.end_ns, s->now_ns) / NS_PER_US);
        }
    }
}

/* Jobs that will begin by their deadlines, as the front says before it gets another one. */
static struct {
    uint64_t id[ADMITTED_MOST];
    unsigned count;
} admitted;

/* When it will begin, in parts of the time until its deadline; less than 0: not known. */
static double part_of(struct sim *s, const struct job *j)
{
    struct prediction p = outlook_of(s->f, j);
    if (!p.sure || j->deadline_ns == NS_NEVER || j->deadline_ns <= s->now_ns) {
        return -1;
    }
    return p.begin_ns > s->now_ns
               ? (double)(p.begin_ns - s->now_ns) / (double)(j->deadline_ns - s->now_ns)
               : 0;
}

void due_before(struct sim *s, const struct sim_request *q)
{
    admitted.count = 0;
    if (s->p.special != WORLD_DUE || q->job == NULL || q->job->deadline_ns == 0 ||
        q->sendings != 1) {
        return;
    }
    const struct tenant *t = tenant_of(s, q->client);
    for (const struct job *j = s->f->jobs; j != NULL && t != NULL; j = j->hh.next) {
        bool queued = j->tenant == t && j->state == JOB_QUEUED && admitted.count < ADMITTED_MOST;
        double part = queued ? part_of(s, j) : -1;
        if (part >= 0 && part <= LATEST) {
            admitted.id[admitted.count++] = j->id;
        }
    }
}

/* A job goes before others of its tenant that are due later. It is refused if they would miss their
 * deadlines for it. Of a job that goes before it only what the front expects may change, as it
 * counts jobs by slots of time. So it is with jobs that go before others because it waits for them.
 */
static void check_others(struct sim *s, const struct job *j)
{
    for (unsigned i = 0; i < admitted.count; i++) {
        const struct job *k = job_find(s->f->jobs, admitted.id[i]);
        bool behind = k != NULL && k->state == JOB_QUEUED && k->device == j->device &&
                      job_rank_class(k) == job_rank_class(j) && k->sched.rank > j->sched.rank;
        if (behind && part_of(s, k) > LATEST) {
            sim_fail(s,
                     "due: job %" PRIu64 " is admitted, and for it job %" PRIu64
                     " misses its deadline, which was admitted before",
                     j->id, k->id);
        }
    }
}

/* A job that the new one waits for has got its rank, and so another place than before: what is
 * known of it may be more. */
static bool raises(const struct job *j)
{
    struct hazard_preds preds;
    bool any = false;
    (void)hazard_preds(j, &preds);
    for (unsigned i = 0; i < preds.count && !any; i++) {
        any = preds.job[i]->state == JOB_QUEUED && preds.job[i]->sched.rank == j->sched.rank;
    }
    return any;
}

/* An answer about the new job names a time by its deadline, if one is known. */
static void check_admitted(struct sim *s, const struct sim_request *q, uint64_t id)
{
    const struct job *j = job_find(s->f->jobs, id);
    if (j != NULL) {
        check_behind(s, j);
    }
    if (j == NULL || j->deadline_ns == NS_NEVER || job_ended(j) || j->state != JOB_QUEUED) {
        return;
    }
    check_others(s, j);
    struct prediction p = outlook_of(s->f, j);
    uint64_t due = j->deadline_ns + LATE_NS;
    if (p.sure && p.begin_ns > s->now_ns && !raises(j) &&
        (double)(p.begin_ns - s->now_ns) * (1 + MARGIN) > 1.01 * (double)(due - s->now_ns)) {
        sim_fail(s,
                 "due: job %" PRIu64 " of client %u is admitted, will begin in %" PRIu64
                 " us, and has to in %" PRIu64 " us",
                 id, q->client->index, (p.begin_ns - s->now_ns) / NS_PER_US,
                 (due - s->now_ns) / NS_PER_US);
    }
}

void due_answer(struct sim *s, const struct sim_parcel *p, struct bytes message)
{
    const struct sim_request *q = p->request;
    struct msg_error m;
    struct msg_accepted a;
    char text[TEXT];
    if (q->kind != MSG_KIND_SUBMIT || q->job == NULL || memory_failed()) {
        return;
    }
    if (proto_decode(&schema_msg_error, message, &m, NULL) == 0) {
        if (m.code == ERR_DEADLINE && bytes_to_str(m.text, text, sizeof text)) {
            check_refusal(s, p, text);
        }
    } else if (p == s->asked && q->sendings == 1 &&
               proto_decode(&schema_msg_accepted, message, &a, NULL) == 0) {
        check_admitted(s, q, a.job);
    }
}

/* ---- jobs on their way ----------------------------------------------------------------------- */

void due_sent(struct sim *s, const struct msg_f_job *m, const struct sim_job *j)
{
    if (m->deadline_ns != NS_NEVER && s->now_ns > m->deadline_ns + LATE_NS) {
        sim_fail(s, "due: job %" PRIu64 " is sent %" PRIu64 " us after its deadline", m->job,
                 (s->now_ns - m->deadline_ns) / NS_PER_US);
    }
    if (j == NULL || j->lied || j->vague) {
        return;
    }
    bool none = m->deadline_ns == NS_NEVER;
    if (none != (j->deadline_ns == 0) || (!none && (m->deadline_ns < j->sent_ns + j->deadline_ns ||
                                                    m->deadline_ns > s->now_ns + j->deadline_ns))) {
        sim_fail(s,
                 "due: job %" PRIu64 " is sent with a deadline in %" PRIu64
                 " us, its client gave it %" PRIu64 " us",
                 m->job, none ? 0 : (m->deadline_ns - s->now_ns) / NS_PER_US,
                 j->deadline_ns / NS_PER_US);
    }
}

void due_begins(struct sim *s, const struct sim_job *j)
{
    if (j->refused_era == s->era && !memory_failed()) {
        sim_fail(s, "due: request %" PRIu64 " of client %u was refused, and its job runs",
                 j->request->seq, j->client->index);
    }
}
