#include "daemon/front/sched/history.h"
#include "daemon/front/workers/command.h"

#include <utlist.h>

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
    return j->answer == ANSWER_SENT && j->device != NULL && j->device->epoch == j->epoch;
}

void job_free_staging(struct front *f, struct job *j)
{
    bool had = j->input != RANGE_NONE || j->output != RANGE_NONE;
    free_ranges(j);
    if (had && in_ledger(j)) {
        command_outputs_released(f, j);
    }
}

/* The client may send the request again, even to the next front: it must not run twice. The next
 * front knows it by the worker's ledger, or by the record, which outlives the worker. */
static bool must_stay(const struct job *j)
{
    return j->answer == ANSWER_SENT && (in_ledger(j) || j->record != 0);
}

static void forget(struct front *f, struct job *j)
{
    if (f->table_queries != NULL) {
        f->hooks.entry_removed(f, j, j->hh.prev);
    }
    HASH_DEL(f->jobs, j);
    job_finish(j);
    freelist_give(&f->job_freelist, j);
}

static void kept_add(struct front *f, struct job *j)
{
    job_answer_step(&j->answer, ANSWER_KEPT);
    f->kept_count++;
    if (j->tenant != NULL) {
        j->tenant->kept_count++;
        DL_APPEND2(j->tenant->kept, j, kept_prev, kept_next);
    }
}

static void kept_remove(struct front *f, struct job *j)
{
    f->kept_count--;
    if (j->tenant != NULL) {
        j->tenant->kept_count--;
        DL_DELETE2(j->tenant->kept, j, kept_prev, kept_next);
    }
}

void job_release(struct front *f, struct job *j)
{
    bool kept = j->answer == ANSWER_KEPT;
    bool sent = j->dispatched_ns != 0; /* its worker has an entry for it */
    free_ranges(j);
    if (j->answer != ANSWER_CLOSED) {
        job_answer_step(&j->answer, ANSWER_CLOSED);
        if (sent) {
            command_retire(f, j);
        }
    }
    if (kept) {
        kept_remove(f, j);
        forget(f, j);
    }
}

void job_acknowledged(struct front *f, struct job *j)
{
    if (job_ended(j)) {
        job_release(f, j);
    } else if (j->answer == ANSWER_EARLY) {
        job_answer_step(&j->answer, ANSWER_EARLY_ACKED);
    }
}

/* Closes the oldest kept answer of the tenant that has the most, so that a tenant that acknowledges
 * nothing does not displace answers of others. */
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

void history_add(struct front *f, struct job *j)
{
    j->ended_next = NULL;
    if (f->history_tail != NULL) {
        f->history_tail->ended_next = j;
    } else {
        f->history = j;
    }
    f->history_tail = j;
    f->history_count++; /* the oldest leave when the turn ends: callers may use them */
}

void job_forget_history(struct front *f, unsigned keep)
{
    while (f->history_count > keep) {
        struct job *j = f->history;
        f->history = j->ended_next;
        if (f->history == NULL) {
            f->history_tail = NULL;
        }
        f->history_count--;
        if (must_stay(j)) {
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
            at = &j->ended_next;
            continue;
        }
        *at = j->ended_next;
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
