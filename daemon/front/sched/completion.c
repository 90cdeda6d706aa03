#include "daemon/front/sched/completion.h"

#include <stdlib.h>

#include "daemon/front/model/flight.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/sched/charge.h"
#include "daemon/front/sched/conclude.h"
#include "daemon/front/sched/queue.h"
#include "daemon/front/sched/shares.h"
#include "daemon/front/sched/turns.h"
#include "daemon/front/workers/blame.h"
#include "daemon/front/workers/command.h"

#define EXTERNAL_MAX 64u /* how often a job runs again after external ends of its worker */

static void take_timings(struct job *j, const struct msg_w_done *m)
{
    free(j->timings); /* a worker may report twice */
    j->timings = NULL;
    j->timing_count = 0;
    if (m->timings.count == 0) {
        return;
    }
    j->timings = calloc(m->timings.count, sizeof *j->timings);
    if (j->timings == NULL) {
        return; /* times are optional */
    }
    struct proto_iter it = proto_iter_of(m->timings);
    struct proto_timing t;
    while (j->timing_count < m->timings.count && proto_list_next(&it, &schema_timing, &t)) {
        struct timing *to = &j->timings[j->timing_count++];
        *to = (struct timing){.step = t.step, .begin_ns = t.begin_ns, .end_ns = t.end_ns};
        (void)bytes_to_str(t.by, to->by, sizeof to->by);
    }
}

/* Front and worker read the same clock. Times that are impossible by that clock are ignored. When
 * an adopted job was dispatched is not known. */
static void take_times(struct job *j, const struct msg_w_done *m, uint64_t now)
{
    uint64_t first_ns = job_adopted(j) ? j->submitted_ns : j->dispatched_ns;
    if (m->started_ns >= first_ns && m->started_ns <= m->ended_ns && m->ended_ns <= now) {
        j->started_ns = m->started_ns;
        j->ended_ns = m->ended_ns;
        if (j->device != NULL) {
            j->device->busy_ns += m->ended_ns - m->started_ns;
        }
    } else if (j->started_ns == 0) { /* it did not begin before its stream was free */
        uint64_t free_ns = j->device != NULL ? j->device->stream_ns[j->stream] : 0;
        j->started_ns = free_ns > j->dispatched_ns ? free_ns : j->dispatched_ns;
    }
}

static void error_of(const struct msg_w_done *m, struct err *ret_e)
{
    (void)err_set_vendor(ret_e, (int)m->code, (int)m->vendor, "%.*s", (int)m->text.size,
                         (const char *)m->text.data);
    ret_e->step = (int)m->step;
    ret_e->arg = (int)m->arg;
    ret_e->effects = (int)m->effects;
}

/* Adds the argument's name: the worker reports its number only. */
static void name_argument(const struct job *j, struct err *e)
{
    struct bytes name = blame_argument(j, e->step, e->arg);
    if (name.size > 0) {
        (void)err_wrap(e, "argument %d (%.*s)", e->arg, (int)name.size, (const char *)name.data);
    }
}

/* Memory for a copy was refused: the error names the step and argument that need the copy. */
static void name_copy(const struct job *j, struct err *e)
{
    const struct work_copy *c = &j->work.copy;
    if (c->bytes > 0 && (e->code == ERR_DEVICE_MEMORY || e->code == ERR_LIMIT)) {
        e->step = (int)c->step;
        e->arg = (int)c->arg;
        (void)err_wrap(
            e,
            "step %u, argument %u: a copy of %llu bytes, as the kernel may write what is "
            "sealed or opened to be read",
            c->step, c->arg, (unsigned long long)c->bytes);
    }
}

/* Whether a client cancelled it. For an adopted job the front does not know; there it suffices that
 * the job had no effects. */
static bool was_cancelled(const struct job *j, const struct err *e)
{
    return j->cancelled || (job_adopted(j) && e->effects == ERR_EFFECTS_NONE);
}

/* After this report the worker ends itself. completion_lost then decides about this job and the
 * others. */
static void fault_reported(struct device *d, struct job *j, const struct msg_w_done *m)
{
    d->culprit = j;
    d->lost = m->code == ERR_DEVICE_LOST;
    if (j->answer != ANSWER_OPEN && !d->lost) {
        job_trust_step(&j->trust, TRUST_SUSPECT);
    } else if (j->answer == ANSWER_OPEN) {
        error_of(m, &j->error);
    }
}

static void tainted_error(const struct job *j, struct err *ret_e)
{
    if (j->inputs.spoiler != 0) {
        (void)err_set(ret_e, ERR_UNDEFINED, "job %llu, which wrote inputs of this job, failed (%s)",
                      (unsigned long long)j->inputs.spoiler, err_name(j->inputs.code));
    } else {
        (void)err_set(ret_e, ERR_UNDEFINED,
                      "a job that wrote inputs of this job failed before gpud was restarted");
    }
    ret_e->effects = ERR_EFFECTS_MAYBE;
}

void completion_done(struct front *f, struct device *d, const struct msg_w_done *m)
{
    struct job *j = job_find(f->jobs, m->job);
    if (j == NULL || job_ended(j) || j->state == JOB_QUEUED) {
        return; /* reported twice, or unknown to this front */
    }
    if (j->state == JOB_RUNNING || m->code == 0) { /* no begin is reported for brief jobs */
        d->ran_ns = turn_now(f);
    }
    take_times(j, m, turn_now(f));
    take_timings(j, m);
    turns_ended(d, j);
    struct err e;
    err_init(&e);
    if (m->code == ERR_KERNEL_FAULT || m->code == ERR_DEVICE_LOST) {
        fault_reported(d, j, m);
        return;
    }
    d->progress = WORKER_PRODUCTIVE;
    wake_for_pool(f, d);
    /* batch jobs that are held do not wait for a place in the window */
    window_done(&d->window, shares_wait(f, d) && !shares_hold_batch(f, d), turn_now(f));
    if (j->answer != ANSWER_OPEN) {
        e = j->error;
        job_conclude(f, j, JOB_FAILED, &e);
    } else if (m->code < 0) {
        error_of(m, &e);
        name_argument(j, &e);
        name_copy(j, &e);
        bool cancelled = m->code == ERR_CANCELLED && was_cancelled(j, &e);
        job_conclude(f, j, cancelled ? JOB_CANCELLED : JOB_FAILED, &e);
    } else if (j->inputs.state == INPUTS_TAINTED) {
        tainted_error(j, &e);
        job_conclude(f, j, JOB_FAILED, &e);
    } else {
        d->jobs_done++;
        job_conclude(f, j, JOB_DONE, NULL);
    }
}

/* ---- the worker ended ---------------------------------------------------------------------- */

static void convict(struct front *f, struct job *j, const char *why)
{
    struct err e = j->error; /* what its worker reported, if anything */
    char kernels[128];
    if (e.code == 0) {
        (void)err_set(&e, ERR_KERNEL_FAULT, "%s", why);
    }
    blame_kernels(j, e.step, kernels, sizeof kernels);
    if (e.code != ERR_DEVICE_LOST) {
        job_strike(f, j, STRIKE_CRASH);
    }
    if (kernels[0] != '\0') {
        (void)err_wrap(&e, "kernel %s, running alone, ended its worker", kernels);
    }
    job_conclude(f, j, JOB_FAILED, &e);
}

/* external: the end of the worker does not count against the job. suspect: the job becomes
 * TRUST_SUSPECT, else TRUST_ALONE. */
static void run_again(struct front *f, struct job *j, bool external, bool suspect)
{
    f->count.replayed++;
    charge_run(j, shares_left(f, j, job_ran_ns(j, turn_now(f))), j->started_ns != 0);
    job_leave_device(j);
    command_job_unrecord(j);
    struct device *d = j->device;
    if (j->input != RANGE_NONE) {
        (void)range_free(&d->input_range, j->input);
    }
    if (j->output != RANGE_NONE) {
        (void)range_free(&d->output_range, j->output);
    }
    j->input = RANGE_NONE;
    j->output = RANGE_NONE;
    if (external) {
        j->external++;
    } else {
        j->replays++;
        job_trust_step(&j->trust, suspect ? TRUST_SUSPECT : TRUST_ALONE);
    }
    job_set_inputs(j, INPUTS_SOUND, NULL);
    j->cancelled = j->killed = false; /* the next worker was not asked to cancel it */
    j->error = ERR_INIT;
    free(j->timings);
    j->timings = NULL;
    j->timing_count = 0;
    job_set_state(j, JOB_QUEUED, front_now(f));
    f->queued_count++;
    if (j->work.device < 0 && j->origin != ORIGIN_PROBE) {
        d->jobs--;
        j->device = NULL;
    }
    wake_for_job(f, j);
    queue_moved(f, j);
    queue_offer(f, j);
}

static void name_kernels(const struct job *j, struct err *e)
{
    char kernels[128];
    blame_kernels(j, -1, kernels, sizeof kernels);
    if (kernels[0] != '\0') {
        (void)err_wrap(e, "kernel %s", kernels);
    }
}

/* turn: not its time limit, but the turn of its worker. */
static void overdue(struct front *f, struct job *j, bool turn)
{
    struct err e = ERR_INIT;
    if (turn) {
        job_strike(f, j, STRIKE_TURN);
        (void)err_set(&e, ERR_TIME_LIMIT,
                      "ran for %.3f s beyond the turn of its tenant, while others waited for the "
                      "device ([domains] turn_overrun_ms)",
                      (double)f->config.turn_overrun_ms / 1e3);
    } else {
        if (job_limit_ns(j) >= j->ceiling_ns) { /* a client's own limit costs no other tenant */
            job_strike(f, j, STRIKE_LIMIT);
        }
        (void)err_set(&e, ERR_TIME_LIMIT, "ran longer than its time limit of %.3f s",
                      (double)job_limit_ns(j) / 1e9);
    }
    e.effects = job_repeatable(j) ? ERR_EFFECTS_NONE : ERR_EFFECTS_MAYBE;
    name_kernels(j, &e);
    job_conclude(f, j, JOB_FAILED, &e);
}

/* The end of a worker, as far as it matters to the jobs that the worker had. */
struct loss {
    const struct job *culprit; /* for comparing only, as it may have been forgotten already */
    const struct job *suspect; /* only job of a worker that ended by itself; NULL: none */
    bool external;
    bool overran; /* the culprit did not leave the device when its turn was over */
    bool lost;    /* its driver, and the culprit is the job that met that */
    const char *why;
};

static void lost_error(const struct job *j, const char *why, struct err *ret_e)
{
    (void)err_set(ret_e, ERR_WORKER_LOST, "%s while the job ran; it may have had effects", why);
    ret_e->effects = ERR_EFFECTS_MAYBE;
    name_kernels(j, ret_e);
}

void completion_departed(struct front *f, struct job *j, const char *why)
{
    struct err e = ERR_INIT;
    lost_error(j, why, &e);
    job_conclude(f, j, JOB_LOST, &e);
}

static void give_up(struct front *f, struct job *j, const struct loss *l)
{
    struct err e = ERR_INIT;
    lost_error(j, l->why, &e);
    if (l->suspect == j) {
        job_strike(f, j, STRIKE_CRASH); /* it does not run again, so no later run convicts it */
    }
    job_conclude(f, j, JOB_LOST, &e);
}

/* The job ends with the error that its client has already. */
static void end_answered(struct front *f, struct job *j, const struct loss *l)
{
    struct err e = j->error;
    bool fault = j->trust == TRUST_SUSPECT;
    if (fault || l->suspect == j) { /* it does not run again, so no later run convicts it */
        job_strike(f, j, STRIKE_CRASH);
    } else if (l->culprit == j && !l->lost) {
        job_strike(f, j, l->overran ? STRIKE_TURN : STRIKE_LIMIT);
    }
    if (fault) {
        job_trust_step(&j->trust, TRUST_ALONE); /* job_conclude must not strike it again */
    }
    job_conclude(f, j, JOB_FAILED, &e);
}

/* Whether its client gets what it asked for: the worker was ended for that, or the job would run
 * again. */
static bool ends_cancelled(const struct job *j, const struct loss *l)
{
    bool other = l->culprit != NULL && l->culprit != j;
    return (j->killed && l->external) ||
           (j->cancelled && job_repeatable(j) && (l->external || other));
}

static void cancelled(struct front *f, struct job *j, const struct loss *l)
{
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_CANCELLED, "cancelled, and %s while the job ran", l->why);
    e.effects = job_repeatable(j) ? ERR_EFFECTS_NONE : ERR_EFFECTS_MAYBE;
    job_conclude(f, j, JOB_CANCELLED, &e);
}

static void decide(struct front *f, struct job *j, const struct loss *l)
{
    bool limit = l->culprit == j && j->error.code == 0;
    bool other = l->culprit != NULL && l->culprit != j;
    if (limit) {
        overdue(f, j, l->overran);
    } else if (ends_cancelled(j, l)) {
        cancelled(f, j, l);
    } else if (!job_repeatable(j)) {
        give_up(f, j, l);
    } else if (l->external && j->external < EXTERNAL_MAX) {
        run_again(f, j, true, false);
    } else if (!l->external && j->trust == TRUST_ALONE && !other) {
        convict(f, j, l->why);
    } else if (j->replays == 0) {
        run_again(f, j, false, l->suspect == j);
    } else {
        give_up(f, j, l);
    }
}

/* The only job of a worker that ended by itself. NULL: there were several, another reason for the
 * end is known, or the worker reported a fault of the device. */
static const struct job *suspect_of(const struct device *d, bool external)
{
    const struct job *only = d->inflight;
    bool known = d->culprit != NULL && d->culprit->answer != ANSWER_OPEN;
    bool one = only != NULL && only->device_next == NULL;
    return one && !external && !known && only->error.code != ERR_DEVICE_LOST ? only : NULL;
}

void completion_lost(struct front *f, struct device *d, bool external, const char *why)
{
    const struct loss l = {.culprit = d->culprit,
                           .suspect = suspect_of(d, external),
                           .external = external,
                           .overran = d->overran,
                           .lost = d->lost,
                           .why = why};
    /* Oldest first, so that predecessors are decided before their successors. Deciding a job may
     * make other jobs ready, but takes only this job out of the list. */
    while (d->inflight != NULL) {
        if (d->inflight->answer != ANSWER_OPEN) {
            end_answered(f, d->inflight, &l);
        } else {
            decide(f, d->inflight, &l);
        }
    }
    d->exclusive = false;
}

/* ---- the answer ---------------------------------------------------------------------------- */

static int add_outputs(const struct job *j, struct capbuf *out, uint64_t *ret_count, struct err *e)
{
    if (j->state != JOB_DONE || j->device == NULL) {
        return 0;
    }
    for (unsigned i = 0; i < j->work.output_count; i++) {
        const struct work_output *o = &j->work.outputs[i];
        struct proto_output output = {.step = o->step, .arg = o->arg};
        if (o->size > 0 && j->output == RANGE_NONE) {
            return err_set(e, ERR_LIMIT,
                           "job %llu has run, but its outputs were dropped: their memory was "
                           "needed before the client fetched the answer",
                           (unsigned long long)j->id);
        }
        if (o->size > 0) {
            output.data = bytes_of(j->device->output.data + j->output + o->offset, o->size);
        }
        int rc = proto_list_add(&schema_output, &output, out, e);
        if (rc != 0) {
            return rc;
        }
        ++*ret_count;
    }
    return 0;
}

int completion_result(const struct job *j, struct capbuf *out, struct err *e)
{
    struct capbuf outputs;
    struct capbuf timings;
    uint64_t count = 0;
    capbuf_init(&outputs, PROTO_MESSAGE_MAX);
    capbuf_init(&timings, 65536);
    struct err why = j->error;
    int rc = add_outputs(j, &outputs, &count, &why);
    if (rc == ERR_LIMIT) { /* the result carries this error instead of outputs */
        why.effects = ERR_EFFECTS_MAYBE;
        capbuf_reset(&outputs);
        count = 0;
        rc = 0;
    } else if (rc != 0 && e != NULL) {
        *e = why;
    }
    if (rc == 0) {
        rc = job_timings(j, &timings, e);
    }
    if (rc == 0) {
        uint64_t began = j->started_ns > 0 ? j->started_ns : j->ended_ns;
        struct proto_result r = {
            .job = j->id,
            .code = why.code,
            .vendor = why.vendor,
            .step = why.code != 0 ? why.step : -1,
            .arg = why.code != 0 ? why.arg : -1,
            .effects = (uint64_t)why.effects,
            .retry_after_ns = why.retry_after_ns,
            .text = bytes_str(why.text),
            .outputs = proto_list_of(&outputs, count),
            .device = j->device != NULL ? device_shown(j->device) + 1 : 0,
            .queued_ns = began > j->submitted_ns ? began - j->submitted_ns : 0,
            .executed_ns = j->ended_ns > began ? j->ended_ns - began : 0,
            .replays = j->replays + j->external,
            .timings = proto_list_of(&timings, j->timing_count),
        };
        rc = proto_list_add(&schema_result, &r, out, e);
    }
    capbuf_finish(&outputs);
    capbuf_finish(&timings);
    return rc;
}
