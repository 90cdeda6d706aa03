#include "daemon/front/sched/outlook.h"

#include <stdlib.h>

#include "common/saturate.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/sched/transit.h"

#define FEW         32u       /* most jobs wait for no more: their table is on the stack */
#define JOBS_A_UNIT 2u        /* of work of a turn */
#define SLOTS_OF(n) (2 * (n)) /* a power of two, and never full */

/* A job on the way to the one asked about. Of the jobs before it the one that ends last decides. */
struct stop {
    const struct job *job; /* NULL: free */
    unsigned below;        /* the stop that waits for it; for the one asked about: any */
    bool done;
    struct prediction p;
    uint64_t from_ns; /* since when the device has worked for the tenant on what is before it */
    uint64_t work_ns; /* and how much of that work there is, with the job's own */
};

struct walk {
    struct front *f;
    struct stop *stop; /* SLOTS_OF(most), by the job's number */
    unsigned most;     /* jobs */
    unsigned count;    /* jobs; beyond `most`: there are too many */
};

static struct stop *stop_at(struct walk *w, const struct job *j)
{
    unsigned slots = SLOTS_OF(w->most);
    unsigned at = (unsigned)(forecast_mix(0, j->id) % slots);
    while (w->stop[at].job != NULL && w->stop[at].job != j) {
        at = (at + 1) % slots;
    }
    return &w->stop[at];
}

static bool waits_for_others(const struct job *j)
{
    return j->state == JOB_QUEUED && !j->sched.ready.in && !hazard_clear(j);
}

/* At its free slot. NULL: there are too many. */
static struct stop *add(struct walk *w, struct stop *x, const struct job *j, unsigned below)
{
    if (++w->count > w->most) {
        return NULL;
    }
    *x = (struct stop){.job = j, .below = below};
    if (!waits_for_others(j)) {
        x->p = predict_job(w->f, j);
        x->work_ns = sat_sub(x->p.end_ns, x->p.begin_ns);
        x->from_ns = x->p.begin_ns;
        x->done = true;
    }
    return x;
}

/* The last of the jobs before it decides. Of one of another tenant, or elsewhere, only the end is
 * of interest. */
static void finish(struct walk *w, struct stop *x, const struct stop *last, bool sure)
{
    bool same = last->job->tenant == x->job->tenant && last->job->device == x->job->device;
    x->from_ns = same ? last->from_ns : last->p.end_ns;
    x->work_ns = same ? last->work_ns : 0;
    x->p = predict_behind(w->f, x->job, x->from_ns, x->work_ns);
    if (x->p.begin_ns < last->p.end_ns && x->p.begin_ns > 0) {
        x->p.end_ns += last->p.end_ns - x->p.begin_ns;
        x->p.begin_ns = last->p.end_ns;
    }
    struct estimate way = transit_of(w->f, x->job, turn_now(w->f));
    x->p.begin_ns += x->p.begin_ns > 0 ? way.ns : 0;
    x->p.end_ns += x->p.begin_ns > 0 ? way.ns : 0;
    sure = sure && way.sure;
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
            pred = add(w, pred, preds.job[i], (unsigned)(x - w->stop));
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

/* Does the job get the place of `j`, which waits for it, before others of its tenant there? */
static bool is_raised(const struct job *x, const struct job *j)
{
    return x != j && x->state == JOB_QUEUED && x->tenant == j->tenant && x->device == j->device &&
           x->sched.rank > job_rank(j);
}

/* What the jobs take that get its place. */
static uint64_t raised_by(const struct walk *w, const struct job *j)
{
    uint64_t ns = 0;
    for (unsigned i = 0; i < SLOTS_OF(w->most); i++) {
        const struct stop *x = &w->stop[i];
        bool counts = x->job != NULL && is_raised(x->job, j);
        ns = sat_add(ns, counts ? predict_time(w->f, x->job).ns : 0);
    }
    return ns;
}

/* stop: zeroed. false: more than `most` jobs are before it. ret_raised_ns: raised_by; may be NULL.
 */
static bool walk_to(struct front *f, const struct job *j, struct stop *stop, unsigned most,
                    struct prediction *ret_p, uint64_t *ret_raised_ns)
{
    struct walk w = {.f = f, .stop = stop, .most = most};
    struct stop *last = add(&w, stop_at(&w, j), j, 0);
    for (struct stop *x = last; x != NULL;) {
        x = step(&w, x, last);
    }
    turn_count(f, w.count / JOBS_A_UNIT);
    *ret_p = last->done ? last->p : (struct prediction){0};
    if (ret_raised_ns != NULL) {
        *ret_raised_ns = raised_by(&w, j);
    }
    return w.count <= most;
}

static struct prediction behind_others(struct front *f, const struct job *j,
                                       uint64_t *ret_raised_ns)
{
    struct stop few[SLOTS_OF(FEW)] = {0};
    struct prediction p;
    if (!walk_to(f, j, few, FEW, &p, ret_raised_ns)) {
        struct stop *many = calloc(SLOTS_OF(OUTLOOK_JOBS_MAX), sizeof *many);
        if (many != NULL) {
            (void)walk_to(f, j, many, OUTLOOK_JOBS_MAX, &p, ret_raised_ns);
        }
        free(many);
    }
    return p;
}

struct prediction outlook_of(struct front *f, const struct job *j)
{
    bool waits = j->tenant != NULL && waits_for_others(j);
    return waits ? behind_others(f, j, NULL) : predict_job(f, j);
}

int outlook_admit(struct front *f, const struct job *j, struct err *e)
{
    if (!waits_for_others(j)) {
        return predict_admit(f, j, e);
    }
    uint64_t raised_ns = 0;
    struct prediction p = behind_others(f, j, &raised_ns);
    uint64_t now = turn_now(f);
    uint64_t left_ns = sat_sub(j->deadline_ns, now);
    uint64_t wait_ns = sat_sub(p.begin_ns, now);
    if (!p.sure || !predict_late(wait_ns, left_ns)) {
        return predict_room(f, j, raised_ns, e);
    }
    return err_set(
        e, ERR_DEADLINE,
        "it would begin in about %.3f ms and end in about %.3f ms, its deadline to begin "
        "is in %.3f ms: refused, as it waits for jobs that use the same buffers",
        (double)wait_ns / 1e6, (double)sat_sub(p.end_ns, now) / 1e6, (double)left_ns / 1e6);
}
