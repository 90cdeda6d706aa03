#include "daemon/front/sched/dispatch.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "daemon/front/model/flight.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/sched/conclude.h"
#include "daemon/front/sched/conduct.h"
#include "daemon/front/sched/gate.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/sched/history.h"
#include "daemon/front/sched/placing.h"
#include "daemon/front/sched/queue.h"
#include "daemon/front/sched/shares.h"
#include "daemon/front/sched/turns.h"
#include "daemon/front/workers/command.h"

/* What became of a ready job. SENT: it was sent, or it ended. NEXT: it left the queue and waits for
 * a hazard, a module or a buffer's content. STOP: it remains ready, and the device takes no job
 * now. */
enum verdict { SENT, NEXT, STOP };

/* Whether what the use reads is defined, or will be when earlier jobs in the same worker are
 * done. */
static bool content_there(const struct device *d, const struct work_use *u)
{
    struct spans content = u->buffer->defined;
    const struct buffer_use *before = u->entry;
    while (!spans_cover(&content, u->read_begin, u->read_end)) {
        before = hazard_writer_before(before);
        if (before == NULL || before->job->device != d || before->job->state == JOB_QUEUED) {
            return false;
        }
        const struct work_use *w = &before->job->work.uses[before->index];
        bool sure = before->job->answer == ANSWER_OPEN;
        for (unsigned i = 0; sure && i < w->part_count; i++) {
            spans_add(&content, w->part[i].begin, w->part[i].end);
        }
    }
    return true;
}

static int undefined(const struct work_use *u, struct err *e)
{
    const struct buffer *b = u->buffer;
    char title[BUFFER_TITLE];
    char step[32] = "";
    if (b->spoiled_by == 0) {
        return err_set(e, ERR_UNDEFINED,
                       "%s: bytes %llu to %llu are undefined: they were never written",
                       buffer_title(b, title), (unsigned long long)u->read_begin,
                       (unsigned long long)u->read_end);
    }
    if (b->spoiled_step >= 0) {
        (void)snprintf(step, sizeof step, " in step %d", b->spoiled_step);
    }
    return err_set(e, ERR_UNDEFINED,
                   "%s: bytes %llu to %llu are undefined: job %llu, which was to write, ended with "
                   "%s%s; write them anew",
                   buffer_title(b, title), (unsigned long long)u->read_begin,
                   (unsigned long long)u->read_end, (unsigned long long)b->spoiled_by,
                   err_name(b->spoiled_code), step);
}

/* Names the step that reads the buffer, and the argument if the step is a launch. */
static int name_reader(const struct work_use *u, struct err *e)
{
    e->step = (int)u->step;
    if (u->reader == NULL) {
        return err_wrap(e, "step %u", u->step);
    }
    kernel_name_arg(u->reader, u->arg, e);
    return err_wrap(e, "step %u, launch: %s", u->step, u->reader->name);
}

/* The buffer is where the first job in its line runs, and moves there when no job has it.
 * *ret_here: it is on the device, and no job before this one needs it elsewhere. A variable does
 * not move: a job that was bound to another device before it was opened only keeps its order. */
static int check_place(struct front *f, const struct device *d, struct buffer *b, bool *ret_here,
                       struct err *e)
{
    const struct buffer_use *first = hazard_first(b);
    if ((b->flags & BUFFER_FLAG_VARIABLE) != 0) {
        *ret_here = true;
        return 0;
    }
    bool near = first == NULL || first->job->device == d;
    *ret_here = near && b->device == d->index && b->move == MOVE_NONE;
    return near && b->device != d->index ? f->hooks.buffer_need(f, b, f->device[d->index], e) : 0;
}

/* *ret_here: the worker has it. If not, it has yet to get the content of a buffer that it lacked
 * memory for (memory/buffers.h), or the job has gone to another device. */
static int check_buffers(struct front *f, struct job *j, const struct device *d, bool *ret_here,
                         struct err *e)
{
    *ret_here = true;
    for (unsigned i = 0; i < j->work.use_count; i++) {
        const struct work_use *u = &j->work.uses[i];
        struct buffer *b = u->buffer;
        enum buffer_state state = buffer_state(b);
        bool near = b->device == d->index && !b->roams; /* mostly so */
        if (state == BUFFER_LOST) {
            char title[BUFFER_TITLE];
            return err_set(e, ERR_BUFFER_LOST, "%s was lost with its worker",
                           buffer_title(b, title));
        }
        if (u->reads_before_write && !content_there(d, u)) {
            (void)undefined(u, e);
            return name_reader(u, e);
        }
        int rc = near ? 0 : check_place(f, d, b, &near, e);
        if (rc != 0) {
            *ret_here = false;
            return placing_back(f, j, b) ? 0 : rc;
        }
        *ret_here = *ret_here && near && state != BUFFER_RESTORING;
    }
    return 0;
}

/* Its tenant may have been paused, and a kernel quarantined, since the job was admitted. */
static int check_strikes(struct front *f, const struct job *j, struct err *e)
{
    int rc = j->tenant != NULL ? conduct_check(j->tenant, turn_now(f), e) : 0;
    bool struck = j->tenant != NULL && j->tenant->strikes != NULL;
    for (unsigned i = 0; struck && rc == 0 && i < j->work.step_count; i++) {
        const struct work_step *s = &j->work.steps[i];
        rc = s->op == OP_LAUNCH ? kernel_check(j->tenant, s->module, s->entry, e) : 0;
    }
    return rc;
}

static int modules_ready(struct front *f, struct job *j, struct device *d, bool *ret_ready,
                         struct err *e)
{
    *ret_ready = true;
    for (unsigned i = 0; i < j->work.module_count; i++) {
        struct module *m = j->work.modules[i];
        if (device_set_has(&m->loaded, d->index)) {
            continue;
        }
        struct build *b = module_build(m, d->backend, d->arch);
        if (b != NULL && build_failed(b, front_now(f))) {
            if (e != NULL) {
                *e = b->error;
                (void)err_wrap(e, "kernels of %s", m->name);
            }
            return b->error.code;
        }
        *ret_ready = false;
        f->hooks.module_need(f, m, d);
    }
    return 0;
}

static bool staging_take(struct job *j, struct device *d)
{
    j->input = RANGE_NONE;
    j->output = RANGE_NONE;
    if (j->work.input_bytes > 0) {
        j->input = range_alloc(&d->input_range, j->work.input_bytes);
        if (j->input == RANGE_NONE) {
            return false;
        }
    }
    if (j->work.output_bytes > 0) {
        j->output = range_alloc(&d->output_range, j->work.output_bytes);
        if (j->output == RANGE_NONE && j->input != RANGE_NONE) {
            (void)range_free(&d->input_range, j->input);
            j->input = RANGE_NONE;
        }
        return j->output != RANGE_NONE;
    }
    return true;
}

/* Copies the inputs. The request keeps its own until the job leaves, because the job may run
 * again. */
static void staging_fill(const struct job *j, struct device *d)
{
    for (unsigned i = 0; i < j->work.input_count; i++) {
        const struct work_input *in = &j->work.inputs[i];
        if (in->data.size > 0) {
            memcpy(d->input.data + j->input + in->offset, in->data.data, in->data.size);
        }
    }
}

/* Whether a new job has less before it in the first stream. */
static bool before(const struct device *d, unsigned a, unsigned b)
{
    return d->stream_ahead_ns[a] != d->stream_ahead_ns[b]
               ? d->stream_ahead_ns[a] < d->stream_ahead_ns[b]
               : d->stream_load[a] < d->stream_load[b];
}

/* Chooses the stream of a predecessor, which saves a wait between streams, or else the stream
 * whose jobs take least. Realtime and other jobs do not share streams. */
static unsigned choose_stream(const struct job *j, const struct hazard_preds *preds,
                              const struct device *d)
{
    unsigned usual = device_usual_streams(d);
    unsigned first = j->sched.urgent && d->urgent > 0 ? usual : 0;
    unsigned end = first == 0 ? usual : d->streams;
    for (unsigned i = 0; preds != NULL && i < preds->count; i++) {
        const struct job *pred = preds->job[i];
        bool there = pred->device == d && pred->state != JOB_QUEUED;
        if (there && pred->stream >= first && pred->stream < end) {
            return pred->stream;
        }
    }
    unsigned best = first;
    for (unsigned i = first + 1; i < end && i < STREAMS_MAX; i++) {
        if (before(d, i, best)) {
            best = i;
        }
    }
    return best;
}

/* The frame could not be sent: the job has changed nothing, and ends like a queued job. */
static void not_sent(struct front *f, struct job *j, const struct err *e)
{
    (void)shares_left(f, j, 0);
    job_leave_device(j);
    job_set_state(j, JOB_QUEUED, front_now(f));
    f->queued_count++;
    job_conclude(f, j, JOB_FAILED, e);
}

static void dispatch_to(struct front *f, struct job *j, struct device *d)
{
    struct err e;
    struct hazard_preds preds;
    const struct hazard_preds *before = hazard_preds(j, &preds) ? &preds : NULL;
    err_init(&e);
    queue_remove(f, j);
    d->jobs += j->device == NULL;
    j->device = d;
    j->epoch = d->epoch;
    if (j->trust == TRUST_SUSPECT) { /* this run shows whether it is to blame */
        job_trust_step(&j->trust, TRUST_ALONE);
    }
    j->stream = choose_stream(j, before, d);
    staging_fill(j, d);
    f->queued_count--;
    job_set_state(j, JOB_DISPATCHED, turn_now(f));
    shares_taken(f, j);
    gate_charge(f, j);
    job_join_device(j);
    wake_at(f, job_overdue_ns(j));
    wake_at(f, ns_add(j->deadline_ns, JOB_LATE_NS));
    if (command_job(f, j, before, &e) != 0) {
        not_sent(f, j, &e);
    }
    queue_moved(f, j);
}

static enum verdict park_behind(struct front *f, struct job *j)
{
    queue_remove(f, j);
    job_set_wait(j, WAIT_HAZARD);
    return NEXT;
}

static enum verdict park(struct front *f, struct job *j, enum job_wait why)
{
    queue_await(f, j, why);
    wake_at(f, ns_add(front_now(f), NS_PER_S)); /* housekeeping then offers it again */
    return NEXT;
}

static enum verdict fail(struct front *f, struct job *j, const struct err *e)
{
    job_conclude(f, j, JOB_FAILED, e);
    return SENT;
}

/* The job has all that it needs but room. */
static enum verdict try_room(struct front *f, struct job *j, struct device *d)
{
    struct err e;
    err_init(&e);
    if (j->work.input_bytes > d->input_range.size || j->work.output_bytes > d->output_range.size) {
        (void)err_set(
            &e, ERR_LIMIT,
            "inputs of %llu bytes and outputs of %llu, staging memory has %llu and %llu "
            "([staging])",
            (unsigned long long)j->work.input_bytes, (unsigned long long)j->work.output_bytes,
            (unsigned long long)d->input_range.size, (unsigned long long)d->output_range.size);
        return fail(f, j, &e);
    }
    enum job_wait limit = gate_wait(f, j);
    if (limit != WAIT_NOTHING) {
        queue_remove(f, j);
        gate_hold(f, j, limit);
        return NEXT;
    }
    if (!staging_take(j, d)) {
        job_set_wait(j, WAIT_STAGING);
        return STOP;
    }
    dispatch_to(f, j, d);
    return SENT;
}

static enum verdict try_send(struct front *f, struct job *j, struct device *d)
{
    struct err e;
    err_init(&e);
    turn_count(f, 1 + j->work.use_count);
    if (!hazard_clear(j)) {
        return park_behind(f, j);
    }
    if (j->trust != TRUST_SHARED && d->inflight_count > 0) {
        job_set_wait(j, WAIT_ALONE);
        return STOP;
    }
    if (j->deadline_ns != NS_NEVER && turn_now(f) >= j->deadline_ns) {
        (void)err_set(&e, ERR_DEADLINE, "its deadline passed while it waited for its turn");
        return fail(f, j, &e);
    }
    if (j->inputs.state == INPUTS_STARVED) {
        (void)err_set(&e, ERR_UNDEFINED,
                      "job %llu, which writes inputs of this job, did not run (%s)",
                      (unsigned long long)j->inputs.spoiler, err_name(j->inputs.code));
        return fail(f, j, &e);
    }
    bool here = false;
    if (check_strikes(f, j, &e) != 0 || check_buffers(f, j, d, &here, &e) != 0) {
        return fail(f, j, &e);
    }
    if (!here) {
        return j->device == NULL || j->device == d ? park(f, j, WAIT_RESTORE) : NEXT;
    }
    bool ready = false;
    if (modules_ready(f, j, d, &ready, &e) != 0) {
        return fail(f, j, &e);
    }
    return ready ? try_room(f, j, d) : park(f, j, WAIT_MODULE);
}

/* Takes staging memory from the oldest unacknowledged answer of the device: it may keep the memory
 * only until a job needs it. */
static bool reclaim(struct front *f, const struct device *d)
{
    for (struct job *j = f->history; j != NULL; j = j->ended_next) {
        if (j->answer == ANSWER_SENT && j->device == d &&
            (j->output != RANGE_NONE || j->input != RANGE_NONE)) {
            job_free_staging(f, j);
            return true;
        }
    }
    return false;
}

/* Whether a job that found no staging memory is to be tried again at once. All of it is free when
 * nothing is in flight and no answer has any: then there was no memory for the entry of its range,
 * and no end of a job will be the occasion for the next try. */
static bool staging_again(struct front *f, const struct device *d)
{
    bool more = reclaim(f, d);
    if (!more && d->inflight_count == 0) {
        front_try_again(f);
    }
    return more;
}

static bool takes(struct front *f, const struct device *d)
{
    return device_takes(d) && !d->exclusive && !front_pressed(f, d->index) &&
           d->inflight_count < device_window(d, f->config.window);
}

/* Whether the device or one of its domains takes a job. The others are shut: other tenants do not
 * wait for them. */
static bool some_take(struct front *f, struct device *base)
{
    base->shut = base->stopped || !takes(f, base);
    bool some = !base->shut;
    for (struct device *d = base->domains; d != NULL; d = d->domain_next) {
        d->shut = d->stopped || !takes(f, d);
        some = some || !d->shut;
    }
    return some;
}

/* The job that goes next, and the worker that gets it. NULL: no job is ready, or they take none
 * now. */
static struct job *next_of(struct front *f, struct device *base, struct device **ret_worker)
{
    struct job *j = NULL;
    if (turns_apply(f, base)) {
        j = turns_head(f, base, ret_worker);
        return j != NULL && takes(f, *ret_worker) ? j : NULL;
    }
    j = some_take(f, base) ? shares_head(f, base) : NULL;
    *ret_worker = j != NULL ? shares_goal(j, base) : NULL;
    return j;
}

/* Devices that a job has stopped, as it could not be alone there, take others now that it has
 * gone. */
static void go_on(struct front *f)
{
    struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        d->stopped = false;
    }
}

/* Sends one job to the device, or to one of its domains. false: none goes now, and the lines of
 * other devices are as they were. */
static bool serve(struct front *f, struct device *base)
{
    bool parked = false;
    while (shares_wait(f, base) && turn_has_room(f)) {
        struct device *d = NULL;
        struct job *j = next_of(f, base, &d);
        if (j == NULL) {
            break;
        }
        bool stopped = j->wait == WAIT_ALONE;
        enum verdict v = try_send(f, j, d);
        if (v == SENT) {
            if (stopped) {
                go_on(f);
            }
            return true;
        }
        parked = parked || v == NEXT; /* jobs behind it may go to other devices */
        d->stopped = v == STOP && (j->wait != WAIT_STAGING || !staging_again(f, d));
    }
    return parked;
}

/* A device that does not serve yet runs its first job only. */
static void serve_probe(struct front *f, struct device *d)
{
    struct job *j = d->probe;
    bool alive = d->killed_ns == 0 && d->link != NULL;
    if (d->state == DEVICE_PROBING && alive && j != NULL && j->state == JOB_QUEUED) {
        (void)try_send(f, j, d);
    }
}

void dispatch_all(struct front *f)
{
    struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        d->stopped = false;
        serve_probe(f, d);
    }
    bool progress = true;
    while (progress) {
        progress = false;
        queue_gates_turn(f);
        for (unsigned i = 0; i < f->device_count; i++) {
            progress = serve(f, f->device[i]) || progress;
        }
    }
    if (!turn_has_room(f)) {
        f->hooks.kick(f);
    }
}
