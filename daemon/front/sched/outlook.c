#include "daemon/front/sched/outlook.h"

#include <stdlib.h>

#include "common/saturate.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/sched/hazard.h"

#define SLOTS (2 * OUTLOOK_JOBS_MAX) /* a power of two */

/* A job on the way to the one asked about. Of the jobs before it the one that ends last decides. */
struct stop {
    const struct job *job; /* NULL: free */
    unsigned below;        /* the stop that waits for it; SLOTS: none */
    bool done;
    struct prediction p;
    uint64_t from_ns; /* since when the device has worked for the tenant on what is before it */
    uint64_t work_ns; /* and how much of that work there is, with the job's own */
};

struct walk {
    struct front *f;
    struct stop *stop; /* SLOTS, by the job's number */
    unsigned count;
};

static struct stop *stop_at(struct walk *w, const struct job *j)
{
    unsigned at = (unsigned)(forecast_mix(0, j->id) % SLOTS);
    while (w->stop[at].job != NULL && w->stop[at].job != j) {
        at = (at + 1) % SLOTS;
    }
    return &w->stop[at];
}

static unsigned index_of(const struct walk *w, const struct stop *x)
{
    return (unsigned)(x - w->stop);
}

static bool waits_for_others(const struct job *j)
{
    return j->state == JOB_QUEUED && !j->sched.ready.in && !hazard_clear(j);
}

/* NULL: there are too many. */
static struct stop *add(struct walk *w, const struct job *j, unsigned below)
{
    struct stop *x = stop_at(w, j);
    if (x->job != NULL || w->count == OUTLOOK_JOBS_MAX) {
        return NULL;
    }
    w->count++;
    *x = (struct stop){.job = j, .below = below};
    if (!waits_for_others(j)) {
        x->p = predict_job(w->f, j);
        x->work_ns = sat_sub(x->p.end_ns, x->p.begin_ns);
        x->from_ns = x->p.begin_ns;
        x->done = true;
    }
    return x;
}

/* The last of the jobs before it decides. Of one of another tenant only the end is of interest. */
static void finish(struct walk *w, struct stop *x, const struct stop *last, bool sure)
{
    bool same = last->job->tenant == x->job->tenant;
    x->from_ns = same ? last->from_ns : last->p.end_ns;
    x->work_ns = same ? last->work_ns : 0;
    x->p = predict_behind(w->f, x->job, x->from_ns, x->work_ns);
    if (x->p.begin_ns < last->p.end_ns && x->p.begin_ns > 0) {
        x->p.end_ns += last->p.end_ns - x->p.begin_ns;
        x->p.begin_ns = last->p.end_ns;
    }
    x->work_ns += sat_sub(x->p.end_ns, x->p.begin_ns);
    x->p.sure = x->p.sure && sure;
}

/* Goes on to a job before this one, or is done with this one and goes back. NULL: unknown, or
 * `last` is done. */
static struct stop *step(struct walk *w, struct stop *x, const struct stop *last)
{
    struct hazard_preds preds;
    const struct stop *latest = NULL;
    bool sure = true;
    if (!hazard_preds(x->job, &preds)) {
        return NULL;
    }
    for (unsigned i = 0; i < preds.count; i++) {
        struct stop *pred = stop_at(w, preds.job[i]);
        if (pred->job == NULL) {
            pred = add(w, preds.job[i], index_of(w, x));
        }
        if (pred == NULL || (pred->done && pred->p.end_ns == 0)) {
            return NULL;
        }
        if (!pred->done) {
            return pred;
        }
        sure = sure && pred->p.sure;
        latest = latest == NULL || pred->p.end_ns > latest->p.end_ns ? pred : latest;
    }
    if (latest != NULL) {
        finish(w, x, latest, sure);
    }
    x->done = true;
    return x == last ? NULL : &w->stop[x->below];
}

struct prediction outlook_of(struct front *f, const struct job *j)
{
    if (j->tenant == NULL || !waits_for_others(j)) {
        return predict_job(f, j);
    }
    struct prediction p = {0};
    struct walk w = {.f = f, .stop = calloc(SLOTS, sizeof *w.stop)};
    if (w.stop != NULL) {
        struct stop *last = add(&w, j, SLOTS);
        for (struct stop *x = last; x != NULL;) {
            x = step(&w, x, last);
        }
        p = last->done ? last->p : p;
    }
    free(w.stop);
    return p;
}

int outlook_admit(struct front *f, const struct job *j, struct err *e)
{
    if (!waits_for_others(j)) {
        return predict_admit(f, j, e);
    }
    struct prediction p = outlook_of(f, j);
    uint64_t now = turn_now(f);
    uint64_t left_ns = sat_sub(j->deadline_ns, now);
    uint64_t wait_ns = sat_sub(p.begin_ns, now);
    if (!p.sure || !predict_late(wait_ns, left_ns)) {
        return 0;
    }
    return err_set(
        e, ERR_DEADLINE,
        "it would begin in about %.3f ms and end in about %.3f ms, its deadline to begin "
        "is in %.3f ms: refused, as it waits for jobs that use the same buffers",
        (double)wait_ns / 1e6, (double)sat_sub(p.end_ns, now) / 1e6, (double)left_ns / 1e6);
}
