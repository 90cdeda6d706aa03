#include "daemon/front/conclude.h"

#include <stdlib.h>
#include <utlist.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/due.h"
#include "daemon/front/hazard.h"
#include "daemon/front/queue.h"
#include "daemon/front/requests.h"

/* The time of those that were seen to run after it begins. */
static void make_way(const struct job *j)
{
    struct front *f = j->device->front;
    for (struct job *k = j->device->inflight; k != NULL && j->start != 0; k = k->device_next) {
        if (k->start > j->start) {
            k->alone_ns = turn_now(f);
            due_at(f, k->alone_ns); /* it is looked at again */
        }
    }
}

void job_leave_device(struct job *j)
{
    struct device *d = j->device;
    if (d == NULL || j->device_prev == NULL) {
        return;
    }
    if (d->inflight == j) {
        d->first_ns = turn_now(d->front);
    }
    make_way(j);
    DL_DELETE2(d->inflight, j, device_prev, device_next);
    j->device_prev = j->device_next = NULL;
    d->inflight_count--;
    d->stream_load[j->stream]--;
    d->exclusive = d->exclusive && !j->alone;
}

void job_join_device(struct job *j)
{
    struct device *d = j->device;
    DL_APPEND2(d->inflight, j, device_prev, device_next);
    d->inflight_count++;
    d->stream_load[j->stream]++;
    d->exclusive = j->alone;
}

/* A part that was to be written is defined when all went well, and undefined when it did not. The
 * worker keeps that for who comes after this front, as long as there is somebody to read it. */
static void mark_buffers(struct front *f, struct job *j, bool ok, bool dispatched)
{
    for (unsigned i = 0; i < j->work.use_count; i++) {
        struct work_use *u = &j->work.uses[i];
        if ((u->access & ACCESS_OUT) == 0 || !dispatched) {
            continue;
        }
        struct buffer *b = u->buffer;
        bool was = spans_cover(&b->defined, 0, b->bytes);
        if (!ok) {
            spans_remove(&b->defined, u->write_begin, u->write_end);
        } else if (u->fills) {
            spans_add(&b->defined, u->write_begin, u->write_end);
        }
        bool others = !b->freed || b->users > 1;
        if (was != spans_cover(&b->defined, 0, b->bytes) && others) {
            f->hooks.buffer_meta(f, b);
        }
    }
}

static const struct work_use *use_of(const struct job *j, const struct buffer *b)
{
    for (unsigned i = 0; i < j->work.use_count; i++) {
        if (j->work.uses[i].buffer == b) {
            return &j->work.uses[i];
        }
    }
    return NULL;
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

/* Jobs that were sent behind a writer that failed have read what is undefined, unless a writer
 * between them wrote it again. Those still queued are checked when their turn comes. */
static void taint_readers(const struct job *j)
{
    for (unsigned i = 0; i < j->work.use_count; i++) {
        const struct work_use *u = &j->work.uses[i];
        struct spans bad = {.count = 0};
        if ((u->access & ACCESS_OUT) != 0) {
            spans_add(&bad, u->write_begin, u->write_end);
        }
        for (struct job *k = j->device->inflight; k != NULL && bad.count > 0; k = k->device_next) {
            const struct work_use *v = k->id > j->id ? use_of(k, u->buffer) : NULL;
            if (v != NULL && reads_of(k, v, &bad)) {
                k->tainted = true;
            } else if (v != NULL && (v->access & ACCESS_OUT) != 0 && v->fills) {
                spans_remove(&bad, v->write_begin, v->write_end);
            }
        }
    }
}

/* One that ended before it ran has changed nothing. Those behind it that were to read what it would
 * have written must not read what was there before. They are queued, as it was. */
static void starve_readers(struct front *f, const struct job *j)
{
    if (j->succs == NULL) {
        return; /* who reads what it was to write waits for it, or for one that waits for it */
    }
    for (unsigned i = 0; i < j->work.use_count; i++) {
        const struct work_use *u = &j->work.uses[i];
        struct spans bad = {.count = 0};
        if ((u->access & ACCESS_OUT) != 0) {
            spans_add(&bad, u->write_begin, u->write_end);
        }
        for (struct job *k = f->jobs; k != NULL && bad.count > 0; k = k->hh.next) { /* by age */
            bool behind = k->id > j->id && k->state == JOB_QUEUED;
            const struct work_use *v = behind ? use_of(k, u->buffer) : NULL;
            if (v != NULL && reads_of(k, v, &bad)) {
                k->starved = true;
            } else if (v != NULL && (v->access & ACCESS_OUT) != 0 && v->fills) {
                spans_remove(&bad, v->write_begin, v->write_end);
            }
        }
    }
}

/* Its successors may wait for others now, and for one that is less urgent than they are. */
static void release_one(struct front *f, struct job *succ, bool early)
{
    if (early) {
        queue_raise(f, succ);
    }
    queue_offer(f, succ);
}

static void release_uses(struct front *f, struct job *j)
{
    bool early = j->preds != NULL;
    struct job_edge *x = j->succs;
    struct job *succs[64];
    unsigned count = 0;
    /* Successors are offered after the edges are gone; those beyond the array are found by the
     * scan below, which a job with so many rarely needs. */
    for (; x != NULL && count < 64; x = x->next_succ) {
        succs[count++] = x->succ;
    }
    bool more = x != NULL;
    hazard_leave(j);
    for (unsigned i = 0; i < count; i++) {
        release_one(f, succs[i], early);
    }
    if (more) {
        struct job *each;
        struct job *next;
        HASH_ITER(hh, f->jobs, each, next)
        {
            if (each->wait == WAIT_HAZARD) {
                release_one(f, each, early);
            }
        }
    }
    for (unsigned i = 0; i < j->work.module_count; i++) {
        j->work.modules[i]->users--;
    }
}

/* Last, because whoever is told of the job's end still looks at its buffers. */
static void settle_buffers(struct front *f, struct job *j)
{
    for (unsigned i = 0; i < j->work.use_count; i++) {
        buffer_settle(f, j->work.uses[i].buffer);
    }
    for (unsigned i = 0; i < j->work.arena_count; i++) {
        struct arena *a = j->work.arenas[i].arena;
        bool again = false; /* an arena is settled once: it may be gone then */
        for (unsigned k = i + 1; k < j->work.arena_count && !again; k++) {
            again = j->work.arenas[k].arena == a;
        }
        if (!again) {
            arena_settle(f, a);
        }
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
    if (j->session != NULL) {
        j->session->jobs--;
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

void job_conclude(struct front *f, struct job *j, enum job_state state, const struct err *error)
{
    if (evades(j, state, error)) {
        job_strike(j);
    }
    bool dispatched = j->state != JOB_QUEUED;
    bool ran = dispatched && !(state == JOB_CANCELLED && error->effects == ERR_EFFECTS_NONE);
    if (j->state == JOB_QUEUED) {
        queue_remove(f, j);
        f->queued_count--;
    }
    job_set_state(j, state, turn_now(f));
    if (error != NULL) {
        j->error = *error;
    }
    job_leave_device(j);
    mark_buffers(f, j, state == JOB_DONE, ran);
    if (state != JOB_DONE && dispatched) {
        taint_readers(j);
    }
    if (state != JOB_DONE && !ran) {
        starve_readers(f, j);
    }
    release_uses(f, j);
    f->job_count--;
    f->parked.ended = true;
    f->adopted_arenas -= j->touches_arenas;
    f->input_bytes -= j->charged;
    count_end(f, j);
    f->hooks.job_ended(f, j);
    bool awaited = j->session != NULL;
    settle_buffers(f, j);
    j->session = NULL;
    j->op = NULL;
    request_destroy(j->request);
    j->request = NULL;
    work_finish(&j->work);
    program_unref(j->program);
    j->program = NULL;
    if (!j->retained || !awaited) { /* nobody will say that the answer was taken */
        job_release(f, j);
    }
    history_add(f, j);
    f->hooks.kick(f);
}
