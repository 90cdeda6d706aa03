#include "daemon/front/sched/conclude.h"

#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/model/about.h"
#include "daemon/front/model/flight.h"
#include "daemon/front/model/request.h"
#include "daemon/front/sched/charge.h"
#include "daemon/front/sched/conduct.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/sched/history.h"
#include "daemon/front/sched/predict.h"
#include "daemon/front/sched/queue.h"
#include "daemon/front/sched/shares.h"
#include "daemon/front/workers/command.h"
#include "daemon/front/workers/worker_end.h"

/* The parts that a job writes are defined when it is done, and undefined when it failed. A change
 * goes into the buffer's adoption record, unless no handle and no other job uses the buffer. */
static void mark_buffers(struct front *f, struct job *j, bool ok, bool dispatched)
{
    turn_count(f, j->work.use_count);
    for (unsigned i = 0; i < j->work.use_count; i++) {
        struct work_use *u = &j->work.uses[i];
        if ((u->access & ACCESS_OUT) == 0 || !dispatched) {
            continue;
        }
        struct buffer *b = u->buffer;
        bool was = spans_cover(&b->defined, 0, b->bytes);
        if (!ok) {
            spans_remove(&b->defined, u->write_begin, u->write_end);
            b->spoiled_by = j->id;
            b->spoiled_step = j->error.step;
            b->spoiled_code = j->error.code;
        }
        for (unsigned part = 0; ok && part < u->part_count; part++) {
            spans_add(&b->defined, u->part[part].begin, u->part[part].end);
        }
        bool others = !b->freed || b->users > 1;
        if (was != spans_cover(&b->defined, 0, b->bytes) && others) {
            command_buffer_record(f, b);
        }
    }
}

static bool reads_of(const struct job *j, const struct work_use *u, const struct spans *parts)
{
    if (job_adopted(j)) {
        return (u->access & ACCESS_IN) != 0; /* its parts are unknown */
    }
    for (unsigned i = 0; u->reads_before_write && i < parts->count; i++) {
        if (u->read_begin < parts->at[i].end && parts->at[i].begin < u->read_end) {
            return true;
        }
    }
    return false;
}

static void mark_uses(const struct job *j, bool marked)
{
    for (unsigned i = 0; i < j->work.use_count; i++) {
        j->work.uses[i].buffer->mark = marked ? i + 1 : 0;
    }
}

/* Whether a later job reads a part of `bad`. Parts that it fills are taken out of `bad`. */
static bool reads_bad(const struct job *k, const struct work_use *v, struct spans *bad)
{
    if (bad->count == 0) {
        return false;
    }
    if (reads_of(k, v, bad)) {
        return true;
    }
    for (unsigned i = 0; (v->access & ACCESS_OUT) != 0 && i < v->part_count; i++) {
        spans_remove(bad, v->part[i].begin, v->part[i].end);
    }
    return false;
}

/* Jobs that were sent after a failed writer have read undefined content, unless a writer between
 * them wrote it again. They are tainted. Jobs that are still queued are checked by dispatch. */
static void taint_readers(const struct job *j)
{
    struct spans bad[WORK_USES_MAX];
    for (unsigned i = 0; i < j->work.use_count; i++) {
        const struct work_use *u = &j->work.uses[i];
        bad[i].count = 0;
        if ((u->access & ACCESS_OUT) != 0) {
            spans_add(&bad[i], u->write_begin, u->write_end);
        }
    }
    mark_uses(j, true);
    for (struct job *k = j->device->inflight; k != NULL; k = k->device_next) {
        for (unsigned i = 0; k->id > j->id && i < k->work.use_count; i++) {
            const struct work_use *v = &k->work.uses[i];
            if (v->buffer->mark != 0 && reads_bad(k, v, &bad[v->buffer->mark - 1])) {
                job_set_inputs(k, INPUTS_TAINTED, j);
                command_job_tainted(k);
            }
        }
    }
    mark_uses(j, false);
}

/* A job that ended before it ran has changed nothing. Later jobs that should read what it would
 * have written must not read the earlier content instead: they are starved. They are still queued,
 * because this job was, and they wait for it until all of them are marked. Jobs that came since,
 * when its client may have had the answer, do read the earlier content. false: continued in the
 * next turn. */
static bool starve_readers(struct front *f, const struct job *j)
{
    struct leaving_walk *w = &f->leaving_walk;
    struct buffer_use **at = &f->hazards.walk;
    for (; w->use < j->work.use_count; w->use++, w->begun = false) {
        const struct work_use *u = &j->work.uses[w->use];
        if (!w->begun && (u->access & ACCESS_OUT) == 0) {
            continue;
        }
        if (!w->begun) {
            w->begun = true;
            w->bad.count = 0;
            spans_add(&w->bad, u->write_begin, u->write_end);
            *at = u->entry != NULL ? hazard_behind(u->entry) : NULL;
        }
        for (; *at != NULL && w->bad.count > 0; *at = hazard_behind(*at)) {
            struct job *k = (*at)->job;
            if (!turn_take(f, 1)) {
                return false;
            }
            if (k->state == JOB_QUEUED && k->id < j->ended_before &&
                reads_bad(k, &k->work.uses[(*at)->index], &w->bad)) {
                job_set_inputs(k, INPUTS_STARVED, j);
            }
        }
    }
    *at = NULL;
    *w = (struct leaving_walk){.begun = false};
    return true;
}

/* Successors by an edge may now wait for other jobs, which must become as urgent as they are.
 * queue_turn checks the jobs behind this one in the lines of its buffers. */
static void release_uses(struct front *f, struct job *j)
{
    bool early = j->order.preds != NULL;
    struct job *succs = NULL;
    turn_count(f, work_units(&j->work));
    for (const struct job_edge *x = j->order.succs; x != NULL; x = x->next_succ) {
        x->succ->order.freed_next = succs;
        succs = x->succ;
        turn_count(f, 1);
    }
    hazard_leave(&f->hazards, j);
    for (struct job *succ = succs; succ != NULL; succ = succ->order.freed_next) {
        if (early) {
            queue_raise(f, succ);
        }
        queue_offer(f, succ);
    }
    queue_turn(f);
    for (unsigned i = 0; i < j->work.module_count; i++) {
        j->work.modules[i]->users--;
    }
}

static void count_end(struct front *f, const struct job *j)
{
    uint64_t *counter = j->state == JOB_DONE        ? &f->count.done
                        : j->state == JOB_CANCELLED ? &f->count.cancelled
                        : j->state == JOB_LOST      ? &f->count.lost
                                                    : &f->count.failed;
    ++*counter;
    if (j->tenant != NULL && j->state != JOB_DONE) {
        j->tenant->jobs_failed++;
    }
    if (j->tenant != NULL) {
        j->tenant->detached -= j->detached;
    }
}

static void strike_kernels(const struct job *j)
{
    for (unsigned i = 0; i < j->work.step_count; i++) {
        const struct work_step *s = &j->work.steps[i];
        if (s->op == OP_LAUNCH && s->module->tenant != NULL) {
            struct hash kernel = kernel_hash(s->module, s->entry);
            if (tenant_strike(j->tenant, kernel) == STRIKES_MAX) {
                log_about(LOG_KERNEL_REFUSED, about_job(j),
                          "kernel %s of tenant %s ended workers %d times: jobs with it are refused",
                          s->entry, j->tenant->name, STRIKES_MAX);
            }
        }
    }
}

static void strike_tenant(struct front *f, const struct job *j)
{
    struct tenant *t = j->tenant;
    uint64_t pause = conduct_strike(&t->conduct, turn_now(f));
    if (pause > 0) {
        log_about(LOG_TENANT_PAUSED, about_job(j),
                  "tenant %s is paused for %llu s: %u times its jobs ended a worker that tenants "
                  "share, or overran their turn, at last job %llu",
                  t->name, (unsigned long long)(pause / NS_PER_S), t->conduct.strikes,
                  (unsigned long long)j->id);
    }
}

void job_strike(struct front *f, const struct job *j, enum strike_reason why)
{
    if (j->tenant == NULL) {
        return;
    }
    if (why != STRIKE_LIMIT) {
        strike_kernels(j);
    }
    if (why == STRIKE_TURN || !j->tenant->apart) {
        strike_tenant(f, j);
    }
}

/* The end of a job that a worker had, and that failed there or was lost. */
static void say_fault(const struct job *j)
{
    if (j->state == JOB_FAILED || j->state == JOB_LOST) {
        log_about(LOG_JOB_FAULT, about_job(j), "job %llu%s%s %s: %s", (unsigned long long)j->id,
                  j->tenant != NULL ? " of tenant " : "", j->tenant != NULL ? j->tenant->name : "",
                  j->state == JOB_LOST ? "is lost" : "failed", j->error.text);
    }
}

/* A client must not save kernels from a strike by cancelling a suspect, or by a deadline that
 * leaves it no time to run again. */
static bool evades(const struct job *j, enum job_state state, const struct err *error)
{
    return j->trust == TRUST_SUSPECT &&
           (state == JOB_CANCELLED || (error != NULL && error->code == ERR_DEADLINE));
}

void job_cancel(struct front *f, struct job *j)
{
    if (!j->cancelled) {
        j->cancelled = true;
        command_job_cancel(f, j);
    }
}

int job_kill(struct front *f, struct job *j, struct err *e)
{
    char why[64];
    if (j->device->owner == NULL) {
        return err_set(e, ERR_STATE,
                       "job %llu is in the worker of device %u that tenants share, which is not "
                       "ended for it: without kill it ends before its next step",
                       (unsigned long long)j->id, device_shown(j->device));
    }
    j->cancelled = true;
    j->killed = true;
    (void)snprintf(why, sizeof why, "job %llu was to be killed", (unsigned long long)j->id);
    worker_end(f, j->device, NULL, why);
    return 0;
}

void job_answer_early(struct front *f, struct job *j, const struct err *error)
{
    j->error = *error;
    job_answer_step(&j->answer, ANSWER_EARLY);
    mark_buffers(f, j, false, true);
    taint_readers(j);
    f->hooks.job_answered(f, j);
    j->op = NULL;
    job_cancel(f, j);
}

void job_late(struct front *f, struct job *j, uint64_t now)
{
    struct err e = ERR_INIT;
    if (j->answer != ANSWER_OPEN || now < j->deadline_ns) {
        return;
    }
    (void)err_set(&e, ERR_DEADLINE,
                  "its deadline passed before it began, and the device did not return it; its "
                  "outputs are blocked and undefined until the device finishes it");
    e.effects = job_repeatable(j) ? ERR_EFFECTS_NONE : ERR_EFFECTS_MAYBE;
    job_answer_early(f, j, &e);
}

/* Releases what the job uses: the jobs behind it wait for it no longer. */
static void leave(struct front *f, struct job *j)
{
    release_uses(f, j);
    f->job_count--;
    if (j->tenant != NULL) {
        j->tenant->held[TENANT_JOBS]--;
        if (j->device != NULL) {
            j->device->jobs--;
        }
        j->tenant->input_bytes -= j->charged;
    }
    f->parked.ended = true;
    f->input_bytes -= j->charged;
    f->hooks.job_left(f, j);
    request_destroy(j->request);
    j->request = NULL;
    work_finish(&j->work);
    command_program_unref(f, j->program);
    j->program = NULL;
    history_add(f, j);
    f->hooks.kick(f);
}

void job_leave_some(struct front *f)
{
    while (f->leaving != NULL && turn_has_room(f) && starve_readers(f, f->leaving)) {
        struct job *j = f->leaving;
        f->leaving = j->ended_next;
        f->leaving_tail = f->leaving != NULL ? f->leaving_tail : NULL;
        leave(f, j);
    }
    if (f->leaving != NULL) {
        f->hooks.kick(f);
    }
}

/* Keeps the order: a job leaves after the jobs before it in the lines of its buffers. */
static void leave_later(struct front *f, struct job *j)
{
    j->ended_next = NULL;
    j->ended_before = f->next_job;
    if (f->leaving_tail != NULL) {
        f->leaving_tail->ended_next = j;
    } else {
        f->leaving = j;
    }
    f->leaving_tail = j;
}

/* The worker's ledger keeps the answer until the client acknowledges it. An answer that no
 * client awaits, or of a job that no worker had, is closed at once. */
static void settle_answer(struct front *f, struct job *j, bool dispatched)
{
    bool awaited = j->session != NULL && j->answer != ANSWER_EARLY_ACKED;
    job_part(j);
    j->op = NULL;
    if (!dispatched || !awaited) {
        job_release(f, j);
    } else if (j->answer != ANSWER_CLOSED) { /* closed: no acknowledgement will come */
        job_answer_step(&j->answer, ANSWER_SENT);
    }
}

void job_conclude(struct front *f, struct job *j, enum job_state state, const struct err *error)
{
    if (evades(j, state, error)) {
        job_strike(f, j, STRIKE_CRASH);
    }
    bool dispatched = j->state != JOB_QUEUED;
    /* A job without effects, such as one that its worker refused, leaves its buffers unchanged. */
    bool ran = dispatched && (error == NULL || error->effects != ERR_EFFECTS_NONE);
    if (j->state == JOB_QUEUED) {
        queue_remove(f, j);
        queue_leave_awaiting(f, j);
        f->queued_count--;
    }
    uint64_t cost = shares_left(f, j, job_ran_ns(j, turn_now(f)));
    if (state == JOB_DONE && !job_adopted(j)) { /* else its kernels are unknown */
        predict_learn(j, cost);
    }
    charge_run(j, cost, state == JOB_DONE || ran);
    job_set_state(j, state, turn_now(f));
    agenda_drop(&f->deadlines, &j->expiry);
    if (error != NULL) {
        j->error = *error;
    }
    charge_end(j); /* before the record says that it is counted */
    job_leave_device(j);
    mark_buffers(f, j, state == JOB_DONE, ran);
    if (dispatched) {
        say_fault(j);
        command_job_ended(f, j);
    }
    if (state != JOB_DONE && dispatched) {
        taint_readers(j);
    }
    f->adopted_arenas -= j->origin == ORIGIN_ADOPTED_ARENAS;
    count_end(f, j);
    f->hooks.job_ended(f, j);
    settle_answer(f, j, dispatched);
    if (state == JOB_DONE || ran) {
        leave(f, j);
    } else {
        leave_later(f, j);
        job_leave_some(f);
    }
}
