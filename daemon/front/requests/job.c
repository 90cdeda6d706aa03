/* Requests about jobs, except SUBMIT (sched/admission.h): find, cancel, info, explain. And PING. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/saturate.h"
#include "daemon/front/model/domain.h"
#include "daemon/front/model/op.h"
#include "daemon/front/requests/requests.h"
#include "daemon/front/sched/conclude.h"
#include "daemon/front/sched/conduct.h"
#include "daemon/front/sched/gate.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/sched/outlook.h"
#include "daemon/front/sched/predict.h"
#include "daemon/front/sched/queue.h"
#include "daemon/front/sched/shares.h"
#include "daemon/front/sched/turns.h"
#include "daemon/front/workers/silence.h"

int request_ping(struct request_context *c, struct err *e)
{
    struct msg_pong m = {.value = c->r->msg.ping.value, .now_ns = front_now(c->f)};
    return proto_encode(&schema_msg_pong, &m, c->out, e);
}

/* Finds a job that the session may see. Other jobs count as unknown. */
static int find_job(struct request_context *c, uint64_t id, struct job **ret_job, struct err *e)
{
    struct job *j = job_find(c->f->jobs, id);
    if (j == NULL) {
        return err_set(e, ERR_NOT_FOUND,
                       "there is no job %" PRIu64 "; only the last %u ended jobs are listed", id,
                       HISTORY_MAX);
    }
    if (!rights_sees(&c->f->rights, c->s, j->tenant)) {
        return err_set(e, ERR_NOT_FOUND,
                       "there is no job %" PRIu64 "; only the last %u ended jobs are listed", id,
                       HISTORY_MAX);
    }
    *ret_job = j;
    return 0;
}

int request_job_find(struct request_context *c, struct err *e)
{
    uint64_t number = c->r->msg.job_find.number;
    const struct op *o = op_find(c->s, number);
    if (o == NULL || o->job == 0) {
        return err_set(e, ERR_NOT_FOUND,
                       "request %" PRIu64 " started no job, or its job is no longer listed",
                       number);
    }
    struct msg_accepted m = {.job = o->job};
    return proto_encode(&schema_msg_accepted, &m, c->out, e);
}

int request_cancel(struct request_context *c, struct err *e)
{
    struct job *j = NULL;
    int rc = find_job(c, c->r->msg.cancel.job, &j, e);
    if (rc != 0) {
        return rc;
    }
    if (j->tenant != c->s->tenant && !rights_may(&c->f->rights, c->s, ROLE_CANCEL)) {
        return rights_refuse_cancel(&c->f->config, j->id, e);
    }
    if (j->state == JOB_QUEUED && j->origin != ORIGIN_PROBE) {
        struct err why = ERR_INIT;
        (void)err_set(&why, ERR_CANCELLED, "cancelled before it ran");
        job_conclude(c->f, j, JOB_CANCELLED, &why);
    } else if (!job_ended(j) && c->r->msg.cancel.kill != 0) {
        rc = job_kill(c->f, j, e);
    } else if (!job_ended(j)) {
        job_cancel(c->f, j);
    }
    if (rc != 0) {
        return rc;
    }
    struct msg_done m = {.value = j->state == JOB_CANCELLED};
    return proto_encode(&schema_msg_done, &m, c->out, e);
}

int request_job_info(struct request_context *c, struct err *e)
{
    struct job *j = NULL;
    int rc = find_job(c, c->r->msg.job_info.job, &j, e);
    if (rc != 0) {
        return rc;
    }
    struct prediction expected = outlook_of(c->f, j);
    struct capbuf timings;
    capbuf_init(&timings, 65536);
    rc = job_timings(j, &timings, e);
    if (rc == 0) {
        struct msg_job m = {
            .job = j->id,
            .state = bytes_str(job_state_name(j->state)),
            .label = bytes_str(j->label),
            .code = j->error.code,
            .text = bytes_str(j->error.text),
            .device = j->device != NULL ? device_shown(j->device) + 1 : 0,
            .stream = j->stream,
            .replays = j->replays + j->external,
            .submitted_ns = j->submitted_ns,
            .dispatched_ns = j->dispatched_ns,
            .started_ns = j->started_ns,
            .ended_ns = j->ended_ns,
            .trace_id = j->trace_id,
            .timings = proto_list_of(&timings, j->timing_count),
            .now_ns = front_now(c->f),
            .begins_ns = expected.begin_ns,
            .ends_ns = expected.end_ns,
        };
        rc = proto_encode(&schema_msg_job, &m, c->out, e);
    }
    capbuf_finish(&timings);
    return rc;
}

/* ---- explain ------------------------------------------------------------------------------ */

static void explain_hazard(const struct job *j, char *out, size_t size)
{
    struct hazard_preds preds;
    bool all = hazard_preds(j, &preds);
    const struct job *first = preds.count > 0 ? preds.job[0] : NULL;
    if (first == NULL) {
        (void)snprintf(out, size, "waits for more than %u jobs that use the same buffers",
                       HAZARD_AFTER_MAX);
        return;
    }
    (void)snprintf(out, size,
                   "waits for %s%u job%s that use the same buffers; one of them is job %" PRIu64
                   " (%s)",
                   all ? "" : "more than ", preds.count, preds.count == 1 ? "" : "s", first->id,
                   job_state_name(first->state));
}

static const char *module_waited_for(const struct front *f, const struct job *j)
{
    for (unsigned i = 0; i < j->work.module_count; i++) {
        const struct module *m = j->work.modules[i];
        if (j->device == NULL || !device_set_has(&m->loaded, j->device->index)) {
            return m->name[0] != '\0' ? m->name : "of the user's source";
        }
    }
    (void)f;
    return "its kernels";
}

/* The device whose service the job waits for: the device that it is bound to; or else, if no device
 * serves, the first that may serve later. NULL: a device that may run it serves, or none is to
 * come. */
static const struct device *device_waited_for(const struct front *f, const struct job *j)
{
    if (j->device != NULL) {
        return device_takes(j->device) ? NULL : j->device;
    }
    const struct device *first = NULL;
    for (unsigned i = 0; i < f->device_count; i++) {
        const struct device *d = domain_of(j->tenant, f->device[i]);
        if (!tenant_may_use(j->tenant, i)) {
            continue;
        }
        if (d != NULL && device_serves(d)) {
            return NULL;
        }
        first = first == NULL && d != NULL && device_hopeful(d) ? d : first;
    }
    return first;
}

/* A ready device whose worker is being killed has a reason, too. */
static void explain_device(const struct job *j, const struct device *d, char *out, size_t size)
{
    const char *why = d->reason[0] != '\0' ? d->reason : d->killed_ns != 0 ? d->ending : "";
    const char *state = d->killed_ns != 0 ? "ending its worker" : device_state_name(d);
    if (device_drains(d)) {
        const struct device *base = d->base != NULL ? d->base : d;
        why = base->reason;
        state = device_state_name(base);
    }
    (void)snprintf(out, size, "waits for %sdevice %u, which is %s%s%s",
                   j->device != NULL ? "" : "any device to serve, first of all ", device_shown(d),
                   state, why[0] != '\0' ? ": " : "", why);
}

/* Whether another worker of the device has jobs in flight, and the job waits for its turn. */
static bool is_elsewhere(const struct front *f, const struct device *d)
{
    const struct device *base = d->base != NULL ? d->base : d;
    const struct device *holder = base->turn.holder;
    return turns_apply(f, base) && holder != NULL && holder != d && holder->inflight_count > 0;
}

/* Appends that its tenant has had its part of the device. */
static void explain_cap(const struct job *j, uint64_t ns, char *out, size_t size)
{
    size_t used = strlen(out);
    if (ns > 0) {
        (void)snprintf(out + used, size - used,
                       "; for %.3f ms more its tenant has had its part of the time "
                       "(device_share = %u%% of tenant %s)",
                       (double)ns / 1e6, j->tenant->limits.device_share, j->tenant->name);
    }
}

static void explain_turn(struct front *f, const struct job *j, char *out, size_t size)
{
    const struct device *away = device_waited_for(f, j);
    if (away != NULL) {
        explain_device(j, away, out, size);
        return;
    }
    bool more = false;
    bool held = job_rank_class(j) == CLASS_BATCH;
    bool elsewhere = true; /* all devices that it may run on are other workers' now */
    unsigned ahead = queue_ahead(f, j, &more);
    uint64_t most = 0;
    for (unsigned i = 0; i < f->device_count; i++) {
        struct device *d = domain_of(j->tenant, f->device[i]);
        bool any = j->device == NULL && tenant_may_use(j->tenant, i);
        bool may = d != NULL && (any || j->device == d) && device_serves(d);
        most += may ? device_window(d, f->config.window) : 0;
        held = held && (!may || shares_hold_batch(f, d));
        elsewhere = elsewhere && (!may || is_elsewhere(f, d));
    }
    (void)snprintf(
        out, size,
        "waits for its turn: %u%s of its tenant before it, %" PRIu64 " may be in flight%s%s", ahead,
        more ? " and more" : "", most,
        held ? "; a batch job waits for the one in flight, beside other classes" : "",
        elsewhere ? "; another worker has the device for now (gpuctl devices: turn)" : "");
    explain_cap(j, predict_cap_ns(f, j), out, size);
}

/* The first of the two workers that does not take part in the move now; NULL: both do. */
static const struct device *move_holder(const struct front *f, const struct buffer *b,
                                        const struct device *to)
{
    const struct device *from = f->device[b->device];
    bool away = buffer_state(b) == BUFFER_RESTORING;
    return !away && !device_takes(from) ? from : !device_takes(to) ? to : NULL;
}

/* Is one of its buffers elsewhere, or needed elsewhere first? */
static bool explain_move(const struct front *f, const struct job *j, char *out, size_t size)
{
    char title[BUFFER_TITLE];
    for (unsigned i = 0; i < j->work.use_count; i++) {
        const struct buffer *b = j->work.uses[i].buffer;
        const struct buffer_use *first = hazard_first(b);
        if ((b->flags & BUFFER_FLAG_VARIABLE) != 0) {
            continue; /* it does not move, and jobs elsewhere do not wait for it */
        }
        if (first != NULL && first->job->device != j->device) {
            (void)snprintf(
                out, size, "waits for job %" PRIu64 ", which needs %s on device %u first",
                first->job->id, buffer_title(b, title), device_shown(first->job->device));
            return true;
        }
        if (b->device != j->device->index || b->move != MOVE_NONE) {
            const struct device *holder = move_holder(f, b, j->device);
            int used = snprintf(
                out, size, "waits for %s, which moves from device %u to device %u through the host",
                buffer_title(b, title), b->shown, device_shown(j->device));
            if (b->move == MOVE_NONE && holder != NULL && used > 0 && (size_t)used < size) {
                (void)snprintf(out + used, size - (size_t)used, ": device %u is %s",
                               device_shown(holder), device_state_name(holder));
            }
            return true;
        }
    }
    return false;
}

static void explain_restore(struct front *f, const struct job *j, char *out, size_t size)
{
    char title[BUFFER_TITLE] = "";
    if (explain_move(f, j, out, size)) {
        return;
    }
    for (unsigned i = 0; i < j->work.use_count; i++) {
        if (buffer_state(j->work.uses[i].buffer) == BUFFER_RESTORING) {
            (void)buffer_title(j->work.uses[i].buffer, title);
        }
    }
    if (title[0] == '\0') { /* the content has come, and the job is offered again */
        explain_turn(f, j, out, size);
        return;
    }
    (void)snprintf(out, size,
                   "waits for the content of %s: its device had no memory for it after its worker "
                   "ended, and is asked again",
                   title);
}

static void explain_queued(struct front *f, const struct job *j, char *out, size_t size)
{
    struct err paused = ERR_INIT;
    if (j->tenant != NULL && conduct_check(j->tenant, front_now(f), &paused) != 0) {
        (void)snprintf(out, size, "is refused when its turn comes: %s", paused.text);
        return;
    }
    switch (j->wait) {
    case WAIT_HAZARD:
        explain_hazard(j, out, size);
        break;
    case WAIT_MODULE:
        (void)snprintf(out, size, "waits for kernels %s to be compiled and loaded",
                       module_waited_for(f, j));
        break;
    case WAIT_RESTORE:
        explain_restore(f, j, out, size);
        break;
    case WAIT_STAGING:
        (void)snprintf(out, size,
                       "waits for staging memory: needs %" PRIu64 " bytes in and %" PRIu64 " out",
                       j->work.input_bytes, j->work.output_bytes);
        break;
    case WAIT_FLIGHT:
        (void)snprintf(out, size,
                       "waits for jobs of its tenant: %u are in flight, at most %" PRIu64
                       " may be (inflight_max of tenant %s)",
                       j->tenant->gate.flying, j->tenant->limits.in_flight, j->tenant->name);
        break;
    case WAIT_TRANSFER:
        (void)snprintf(out, size,
                       "waits to transfer %" PRIu64 " bytes, for %.3f ms: its tenant may transfer "
                       "%" PRIu64 " a second (transfer_rate of tenant %s)",
                       work_transfers(&j->work),
                       (double)gate_unpaid_ns(j->tenant, front_now(f)) / 1e6,
                       j->tenant->limits.transfer_rate, j->tenant->name);
        break;
    case WAIT_ALONE:
        (void)snprintf(out, size, "runs again after its worker ended, and waits to run alone");
        break;
    default:
        explain_turn(f, j, out, size);
        break;
    }
}

/* Appends when the job is expected to begin and end. */
static void explain_times(struct front *f, const struct job *j, char *out, size_t size)
{
    struct prediction p = outlook_of(f, j);
    uint64_t now = front_now(f);
    size_t used = strlen(out);
    if (p.begin_ns == 0) {
        return;
    }
    const char *how = p.sure ? "" : ", if it is like the last jobs of its tenant";
    if (j->state == JOB_QUEUED) {
        (void)snprintf(out + used, size - used,
                       "; it is expected to begin in about %.3f ms and to end in about %.3f ms%s",
                       (double)sat_sub(p.begin_ns, now) / 1e6, (double)sat_sub(p.end_ns, now) / 1e6,
                       how);
    } else if (p.end_ns <= now) {
        (void)snprintf(out + used, size - used, "; it was expected to have ended by now%s", how);
    } else {
        (void)snprintf(out + used, size - used, "; it is expected to end in about %.3f ms%s",
                       (double)sat_sub(p.end_ns, now) / 1e6, how);
    }
}

/* Appends that the worker which has the job, or is to get it, lacks what it needs of the host. */
static void explain_silence(struct front *f, const struct job *j, char *out, size_t size)
{
    const struct device *silent = j->device;
    for (unsigned i = 0; i < f->device_count && j->device == NULL; i++) {
        const struct device *d =
            tenant_may_use(j->tenant, i) ? domain_of(j->tenant, f->device[i]) : NULL;
        silent = d != NULL && silence_excused(d) ? d : silent;
    }
    size_t used = strlen(out);
    char why[SILENCE_TEXT];
    if (!job_ended(j) && silent != NULL && silence_excused(silent)) {
        silence_text(silent, front_now(f), why, sizeof why);
        (void)snprintf(out + used, size - used, "; the worker of device %u gives %s",
                       device_shown(silent), why);
    }
}

int request_explain(struct request_context *c, struct err *e)
{
    struct job *j = NULL;
    char why[480] = "";
    char text[PROTO_TEXT_MAX];
    int rc = find_job(c, c->r->msg.explain.job, &j, e);
    if (rc != 0) {
        return rc;
    }
    uint64_t now = front_now(c->f);
    if (j->state == JOB_QUEUED) {
        explain_queued(c->f, j, why, sizeof why);
    } else if (j->answer != ANSWER_OPEN && !job_ended(j)) {
        (void)snprintf(why, sizeof why,
                       "its client has the answer; device %u has not finished it: %s",
                       device_shown(j->device), j->error.text);
    } else if (j->wait == WAIT_MEMORY) {
        const struct msg_w_pool *p = &j->device->pool;
        (void)snprintf(why, sizeof why,
                       "waits for memory of device %u, since %.3f ms: %" PRIu64 " of %" PRIu64
                       " bytes in use, %" PRIu64 " moved to the host",
                       device_shown(j->device), (double)(now - j->dispatched_ns) / 1e6, p->used,
                       device_pool_limit(j->device), p->spilled);
    } else if (!job_ended(j)) {
        (void)snprintf(
            why, sizeof why, "on device %u, stream %u, since %.3f ms%s", device_shown(j->device),
            j->stream, (double)(now - j->dispatched_ns) / 1e6,
            j->cancelled ? "; it was cancelled: its steps that have begun run to their end" : "");
    } else {
        (void)snprintf(why, sizeof why, "%s", j->error.code != 0 ? j->error.text : "without error");
    }
    explain_silence(c->f, j, why, sizeof why);
    explain_times(c->f, j, why, sizeof why);
    (void)snprintf(text, sizeof text, "job %" PRIu64 " is %s: %s", j->id, job_state_name(j->state),
                   why);
    struct msg_explanation m = {.text = bytes_str(text)};
    return proto_encode(&schema_msg_explanation, &m, c->out, e);
}
