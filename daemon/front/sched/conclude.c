#include "daemon/front/sched/conclude.h"

#include <stdlib.h>
#include <utlist.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/model/flight.h"
#include "daemon/front/model/request.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/sched/queue.h"

/* A part that was to be written is defined when all went well, and undefined when it did not. The
 * worker keeps that for who comes after this front, as long as there is somebody to read it. */
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
        } else if (u->fills) {
            spans_add(&b->defined, u->write_begin, u->write_end);
        }
        bool others = !b->freed || b->users > 1;
        if (was != spans_cover(&b->defined, 0, b->bytes) && others) {
            f->hooks.buffer_meta(f, b);
        }
    }
}

static bool reads_of(const struct job *j, const struct work_use *u, const struct spans *parts)
{
    if (j->adopted) {
        return (u->access & ACCESS_IN) != 0; /* which part was not told */
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

/* What of `bad` a job behind reads, or writes over. */
static bool reads_bad(const struct job *k, const struct work_use *v, struct spans *bad)
{
    if (bad->count == 0) {
        return false;
    }
    if (reads_of(k, v, bad)) {
        return true;
    }
    if ((v->access & ACCESS_OUT) != 0 && v->fills) {
        spans_remove(bad, v->write_begin, v->write_end);
    }
    return false;
}

/* Jobs that were sent behind a writer that failed have read what is undefined, unless a writer
 * between them wrote it again. Those still queued are checked when their turn comes. */
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
                k->tainted = true;
                k->spoiler = j->id;
                k->spoiler_code = j->error.code;
            }
        }
    }
    mark_uses(j, false);
}

/* One that ended before it ran has changed nothing. Those behind it that were to read what it would
 * have written must not read what was there before. They are queued, as it was, and wait for it
 * until all of them were looked at. false: the next turn goes on. */
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
            if (k->state == JOB_QUEUED && reads_bad(k, &k->work.uses[(*at)->index], &w->bad)) {
                k->starved = true;
                k->spoiler = j->id;
                k->spoiler_code = j->error.code;
            }
        }
    }
    *at = NULL;
    *w = (struct leaving_walk){.begun = false};
    return true;
}

/* Those behind it by an edge may wait for others now, and for one that is less urgent than they
 * are; those in its buffers' lines are looked at by queue_turn. */
static void release_uses(struct front *f, struct job *j)
{
    bool early = j->preds != NULL;
    struct job *succs = NULL;
    turn_count(f, work_units(&j->work));
    for (const struct job_edge *x = j->succs; x != NULL; x = x->next_succ) {
        x->succ->freed_next = succs;
        succs = x->succ;
        turn_count(f, 1);
    }
    hazard_leave(&f->hazards, j);
    for (struct job *succ = succs; succ != NULL; succ = succ->freed_next) {
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

static void free_ranges(struct job *j)
{
    struct device *d = j->device;
    if (d != NULL && j->input != RANGE_NONE) {
        (void)range_free(&d->input_range, j->input);
        j->input = RANGE_NONE;
    }
    if (d != NULL && j->output != RANGE_NONE) {
        (void)range_free(&d->output_range, j->output);
        j->output = RANGE_NONE;
    }
}

static bool in_ledger(const struct job *j)
{
    return j->retained && j->device != NULL && j->device->epoch == j->epoch;
}

void job_free_staging(struct front *f, struct job *j)
{
    bool had = j->input != RANGE_NONE || j->output != RANGE_NONE;
    free_ranges(j);
    if (had && in_ledger(j)) {
        f->hooks.job_outputs_gone(f, j);
    }
}

static void forget(struct front *f, struct job *j)
{
    f->hooks.gone(f, j, j->hh.prev);
    HASH_DEL(f->jobs, j);
    job_finish(j);
    spare_give(&f->spare_jobs, j);
}

static void kept_add(struct front *f, struct job *j)
{
    j->kept = true;
    f->kept_count++;
    if (j->tenant != NULL) {
        j->tenant->kept_count++;
        DL_APPEND2(j->tenant->kept, j, kept_prev, kept_next);
    }
}

static void kept_remove(struct front *f, struct job *j)
{
    j->kept = false;
    f->kept_count--;
    if (j->tenant != NULL) {
        j->tenant->kept_count--;
        DL_DELETE2(j->tenant->kept, j, kept_prev, kept_next);
    }
}

void job_release(struct front *f, struct job *j)
{
    free_ranges(j);
    if (j->retained) {
        j->retained = false;
        f->hooks.job_retire(f, j);
    }
    if (j->kept) {
        kept_remove(f, j);
        forget(f, j);
    }
}

void job_taken(struct front *f, struct job *j)
{
    if (job_ended(j)) {
        job_release(f, j);
    } else {
        j->taken = j->answered;
    }
}

/* The oldest of the tenant that has most of those that are kept: so nobody takes another's place
 * for answers that he lets lie. */
static void give_up_one_kept(struct front *f)
{
    const struct tenant *most = NULL;
    for (const struct tenant *t = f->tenants; t != NULL; t = t->hh.next) {
        most = most == NULL || t->kept_count > most->kept_count ? t : most;
    }
    if (most != NULL && most->kept != NULL) {
        job_release(f, most->kept);
    }
}

static void history_add(struct front *f, struct job *j)
{
    j->history_next = NULL;
    if (f->history_tail != NULL) {
        f->history_tail->history_next = j;
    } else {
        f->history = j;
    }
    f->history_tail = j;
    f->history_count++; /* the oldest go at the end of the turn: somebody may stand on them now */
}

void job_forget_history(struct front *f, unsigned keep)
{
    while (f->history_count > keep) {
        struct job *j = f->history;
        f->history = j->history_next;
        if (f->history == NULL) {
            f->history_tail = NULL;
        }
        f->history_count--;
        if (in_ledger(j)) {
            /* Who sent it may ask again, of the next front, too: it must not run twice. */
            job_free_staging(f, j);
            kept_add(f, j);
            if (f->kept_count > KEPT_MAX) {
                give_up_one_kept(f);
            }
            continue;
        }
        job_release(f, j);
        forget(f, j);
    }
}

static bool absent(const struct tenant *t)
{
    return t != NULL && t->sessions == 0;
}

void job_forget_absent(struct front *f)
{
    struct job **at = &f->history;
    f->history_tail = NULL;
    while (*at != NULL) {
        struct job *j = *at;
        if (!absent(j->tenant)) {
            f->history_tail = j;
            at = &j->history_next;
            continue;
        }
        *at = j->history_next;
        f->history_count--;
        job_release(f, j);
        forget(f, j);
    }
    for (const struct tenant *t = f->tenants; t != NULL; t = t->hh.next) {
        while (absent(t) && t->kept != NULL) {
            job_release(f, t->kept);
        }
    }
}

void job_strike(const struct job *j)
{
    for (unsigned i = 0; i < j->work.step_count; i++) {
        const struct work_step *s = &j->work.steps[i];
        if (s->op == OP_LAUNCH && j->tenant != NULL && s->module->tenant != NULL) {
            struct hash kernel = kernel_hash(s->module, s->entry);
            if (tenant_strike(j->tenant, kernel) == STRIKES_MAX) {
                log_warn("kernel %s of tenant %s ended workers %d times: jobs with it are refused",
                         s->entry, j->tenant->name, STRIKES_MAX);
            }
        }
    }
}

/* Who takes a job back that just ended its worker, or gives it no time to be run again, does not
 * keep its kernels in service by that. */
static bool evades(const struct job *j, enum job_state state, const struct err *error)
{
    return j->suspect && (state == JOB_CANCELLED || (error != NULL && error->code == ERR_DEADLINE));
}

void job_answer_early(struct front *f, struct job *j, const struct err *error)
{
    j->error = *error;
    j->answered = true;
    mark_buffers(f, j, false, true);
    taint_readers(j);
    f->hooks.job_answered(f, j);
    j->op = NULL;
    if (!j->cancelled) {
        j->cancelled = true;
        f->hooks.job_cancel(f, j);
    }
}

void job_late(struct front *f, struct job *j, uint64_t now)
{
    struct err e = ERR_INIT;
    if (j->answered || now < j->deadline_ns) {
        return;
    }
    (void)err_set(&e, ERR_DEADLINE,
                  "its deadline passed before it began on the device, which does not give it back; "
                  "what it writes stays blocked and undefined until the device is done with it");
    e.effects = job_repeatable(j) ? ERR_EFFECTS_NONE : ERR_EFFECTS_MAYBE;
    job_answer_early(f, j, &e);
}

/* Nobody waits for it any more. */
static void leave(struct front *f, struct job *j)
{
    j->leaving = false;
    release_uses(f, j);
    f->job_count--;
    if (j->tenant != NULL) {
        j->tenant->held[TENANT_JOBS]--;
    }
    f->parked.ended = true;
    f->input_bytes -= j->charged;
    f->hooks.job_left(f, j);
    request_destroy(j->request);
    j->request = NULL;
    work_finish(&j->work);
    program_unref(j->program);
    j->program = NULL;
    history_add(f, j);
    f->hooks.kick(f);
}

void job_leave_some(struct front *f)
{
    while (f->leaving != NULL && turn_has_room(f) && starve_readers(f, f->leaving)) {
        struct job *j = f->leaving;
        f->leaving = j->leaving_next;
        f->leaving_tail = f->leaving != NULL ? f->leaving_tail : NULL;
        leave(f, j);
    }
    if (f->leaving != NULL) {
        f->hooks.kick(f);
    }
}

/* In order: one behind another's place in a line leaves after it. */
static void leave_later(struct front *f, struct job *j)
{
    j->leaving = true;
    j->leaving_next = NULL;
    if (f->leaving_tail != NULL) {
        f->leaving_tail->leaving_next = j;
    } else {
        f->leaving = j;
    }
    f->leaving_tail = j;
}

void job_conclude(struct front *f, struct job *j, enum job_state state, const struct err *error)
{
    if (evades(j, state, error)) {
        job_strike(j);
    }
    bool dispatched = j->state != JOB_QUEUED;
    /* A job without effects, refused by its worker perhaps, leaves its buffers as they were. */
    bool ran = dispatched && (error == NULL || error->effects != ERR_EFFECTS_NONE);
    if (j->state == JOB_QUEUED) {
        queue_remove(f, j);
        queue_leave_module(f, j);
        f->queued_count--;
    }
    job_set_state(j, state, turn_now(f));
    agenda_drop(&f->deadlines, &j->expiry);
    if (error != NULL) {
        j->error = *error;
    }
    job_leave_device(j);
    mark_buffers(f, j, state == JOB_DONE, ran);
    if (state != JOB_DONE && dispatched) {
        taint_readers(j);
    }
    f->adopted_arenas -= j->touches_arenas;
    count_end(f, j);
    f->hooks.job_ended(f, j);
    bool awaited = j->session != NULL && !j->taken;
    job_part(j);
    j->op = NULL;
    if (!j->retained || !awaited) { /* nobody will say that the answer was taken */
        job_release(f, j);
    }
    if (state == JOB_DONE || ran) {
        leave(f, j);
    } else {
        leave_later(f, j);
        job_leave_some(f);
    }
}
