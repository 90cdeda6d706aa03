#include "daemon/front/sched/completion.h"

#include <stdlib.h>

#include "common/clock.h"
#include "daemon/front/model/due.h"
#include "daemon/front/model/flight.h"
#include "daemon/front/sched/conclude.h"
#include "daemon/front/sched/queue.h"
#include "daemon/front/workers/blame.h"

#define EXTERNAL_MAX                                                                               \
    64u /* ends of a worker that one job may live through without being at fault                   \
         */

static void take_timings(struct job *j, const struct msg_w_done *m)
{
    free(j->timings); /* a worker may tell twice */
    j->timings = NULL;
    j->timing_count = 0;
    if (m->timings.count == 0) {
        return;
    }
    j->timings = calloc(m->timings.count, sizeof *j->timings);
    if (j->timings == NULL) {
        return; /* times are a service, not a promise */
    }
    struct proto_iter it = proto_iter_of(m->timings);
    struct proto_timing t;
    while (j->timing_count < m->timings.count && proto_list_next(&it, &schema_timing, &t)) {
        struct timing *to = &j->timings[j->timing_count++];
        *to = (struct timing){.step = t.step, .begin_ns = t.begin_ns, .end_ns = t.end_ns};
        (void)bytes_to_str(t.by, to->by, sizeof to->by);
    }
}

/* A worker's clock is the host's, but its word is not believed beyond what is possible. */
static void take_times(struct job *j, const struct msg_w_done *m, uint64_t now)
{
    if (m->started_ns >= j->dispatched_ns && m->started_ns <= m->ended_ns && m->ended_ns <= now) {
        j->started_ns = m->started_ns;
        j->ended_ns = m->ended_ns;
        if (j->device != NULL) {
            j->device->busy_ns += m->ended_ns - m->started_ns;
        }
    } else if (j->started_ns == 0) {
        j->started_ns = j->dispatched_ns;
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

/* A worker tells an argument's number alone. */
static void tell_argument(const struct job *j, struct err *e)
{
    struct bytes name = blame_argument(j, e->step, e->arg);
    if (name.size > 0) {
        (void)err_wrap(e, "argument %d (%.*s)", e->arg, (int)name.size, (const char *)name.data);
    }
}

/* No room for a copy is a refusal of what the copy is for. */
static void tell_copy(const struct job *j, struct err *e)
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

/* Of one that is from before this front nobody told who cancelled it; that it did nothing is said.
 */
static bool was_asked_for(const struct job *j, const struct err *e)
{
    return j->cancelled || (j->adopted && e->effects == ERR_EFFECTS_NONE);
}

/* The worker ends itself now; what becomes of this job is decided with the others. */
static void fault_told(struct device *d, struct job *j, const struct msg_w_done *m)
{
    d->culprit = j;
    if (j->answered) {
        j->suspect = true;
    } else {
        error_of(m, &j->error);
    }
}

void completion_done(struct front *f, struct device *d, const struct msg_w_done *m)
{
    struct job *j = job_find(f->jobs, m->job);
    if (j == NULL || j->device != d || job_ended(j) || j->state == JOB_QUEUED) {
        return; /* told twice, or a word about what this front never knew */
    }
    if (j->state == JOB_RUNNING || m->code == 0) { /* brief ones are not told of while they run */
        d->ran_ns = turn_now(f);
    }
    take_times(j, m, turn_now(f));
    take_timings(j, m);
    struct err e;
    err_init(&e);
    if (m->code == ERR_KERNEL_FAULT || m->code == ERR_DEVICE_LOST) {
        fault_told(d, j, m);
        return;
    }
    d->productive = true;
    due_pool(f, d);
    window_done(&d->window, f->ready.first != NULL || d->ready.first != NULL, turn_now(f));
    if (j->answered) {
        e = j->error;
        job_conclude(f, j, JOB_FAILED, &e);
    } else if (m->code < 0) {
        error_of(m, &e);
        tell_argument(j, &e);
        tell_copy(j, &e);
        bool cancelled = m->code == ERR_CANCELLED && was_asked_for(j, &e);
        job_conclude(f, j, cancelled ? JOB_CANCELLED : JOB_FAILED, &e);
    } else if (j->tainted) {
        (void)err_set(&e, ERR_UNDEFINED, "job %llu wrote what this one read, and has failed (%s)",
                      (unsigned long long)j->spoiler, err_name(j->spoiler_code));
        e.effects = ERR_EFFECTS_MAYBE;
        job_conclude(f, j, JOB_FAILED, &e);
    } else {
        d->jobs_done++;
        job_conclude(f, j, JOB_DONE, NULL);
    }
}

/* ---- the worker is gone -------------------------------------------------------------------- */

static void convict(struct front *f, struct job *j, const char *why)
{
    struct err e = j->error; /* what its worker still could say, else how it ended */
    char kernels[128];
    if (e.code == 0) {
        (void)err_set(&e, ERR_KERNEL_FAULT, "%s", why);
    }
    blame_kernels(j, e.step, kernels, sizeof kernels);
    job_strike(j);
    if (kernels[0] != '\0') {
        (void)err_wrap(&e, "kernel %s, running alone, ended its worker", kernels);
    }
    job_conclude(f, j, JOB_FAILED, &e);
}

static void run_again(struct front *f, struct job *j, bool external)
{
    f->count.replayed++;
    job_leave_device(j);
    struct device *d = j->device;
    if (j->input != RANGE_NONE) {
        (void)range_free(&d->input_range, j->input);
    }
    if (j->output != RANGE_NONE) {
        (void)range_free(&d->output_range, j->output);
    }
    j->input = RANGE_NONE;
    j->output = RANGE_NONE;
    j->retained = false;
    if (external) {
        j->external++;
    } else {
        j->replays++;
        j->alone = true;
    }
    j->tainted = false;
    j->cancelled = false; /* the next worker was not asked: it may be cancelled there again */
    j->error = ERR_INIT;
    free(j->timings);
    j->timings = NULL;
    j->timing_count = 0;
    job_set_state(j, JOB_QUEUED, clock_now_ns());
    f->queued_count++;
    if (j->work.device < 0 && !j->probe) {
        j->device = NULL;
    }
    due_job(f, j);
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

static void overdue(struct front *f, struct job *j)
{
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_TIME_LIMIT, "ran longer than its time limit of %.3f s",
                  (double)job_limit_ns(j) / 1e9);
    e.effects = job_repeatable(j) ? ERR_EFFECTS_NONE : ERR_EFFECTS_MAYBE;
    name_kernels(j, &e);
    job_conclude(f, j, JOB_FAILED, &e);
}

static void give_up(struct front *f, struct job *j, const char *why)
{
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_WORKER_LOST, "%s while the job ran; it may have had effects", why);
    e.effects = ERR_EFFECTS_MAYBE;
    name_kernels(j, &e);
    if (j->suspect) {
        job_strike(j); /* it is not run again, so nobody will be surer */
    }
    job_conclude(f, j, JOB_LOST, &e);
}

/* The job ends with the error that its client has already. */
static void end_answered(struct front *f, struct job *j)
{
    struct err e = j->error;
    if (j->suspect) {
        job_strike(j); /* it is not run again, so nobody will be surer */
        j->suspect = false;
    }
    job_conclude(f, j, JOB_FAILED, &e);
}

/* culprit: for comparing only, as it may have been decided and forgotten already */
static void decide(struct front *f, struct job *j, const struct job *culprit, bool external,
                   const char *why)
{
    bool limit = culprit == j && j->error.code == 0;
    bool other = culprit != NULL && culprit != j;
    if (limit) {
        overdue(f, j);
    } else if (!job_repeatable(j)) {
        give_up(f, j, why);
    } else if (j->cancelled && (external || other)) {
        struct err e = ERR_INIT;
        (void)err_set(&e, ERR_CANCELLED, "cancelled, and %s while the job ran", why);
        job_conclude(f, j, JOB_CANCELLED, &e);
    } else if (external && j->external < EXTERNAL_MAX) {
        run_again(f, j, true);
    } else if (!external && j->alone && (culprit == NULL || culprit == j)) {
        convict(f, j, why);
    } else if (j->replays == 0) {
        run_again(f, j, false);
    } else {
        give_up(f, j, why);
    }
}

/* What was all that the worker had when it ended by itself: not for the device's sake, if it could
 * say so. */
static void suspect(const struct device *d, bool external)
{
    struct job *only = d->inflight;
    bool known = d->culprit != NULL && d->culprit->answered;
    if (!external && !known && only != NULL && only->device_next == NULL) {
        only->suspect = only->error.code != ERR_DEVICE_LOST;
    }
}

void completion_lost(struct front *f, struct device *d, bool external, const char *why)
{
    const struct job *culprit = d->culprit;
    suspect(d, external);
    /* Oldest first, so that successors find their predecessors decided. Deciding one may end
     * others' waits but never takes one out of this list but itself. */
    while (d->inflight != NULL) {
        if (d->inflight->answered) {
            end_answered(f, d->inflight);
        } else {
            decide(f, d->inflight, culprit, external, why);
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
                           "job %llu has run; its outputs are gone: their memory was needed before "
                           "the answer was taken",
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
    if (rc == ERR_LIMIT) { /* that is its answer */
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
            .device = j->device != NULL ? j->device->index + 1 : 0,
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
