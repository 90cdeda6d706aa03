#include "tests/sim/front/rules/sim_endings.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "daemon/front/model/wake.h"
#include "tests/sim/front/sim.h"

#define LATE_NS (2 * NS_PER_S)

/* ---- limits of time -------------------------------------------------------------------------- */

static uint64_t limit_of(const struct sim *s, const struct sim_job *k)
{
    uint64_t ns = s->p.time_limit_ms * NS_PER_MS;
    return k != NULL && k->limit_ns != 0 && k->limit_ns < ns ? k->limit_ns : ns;
}

/* To the front one that has ended runs until its worker reports that. */
static bool runs_on(const struct sim_worker_job *j)
{
    bool unreported = j->state == WJOB_ENDED && !j->reported && j->began_ns != 0;
    return j->state == WJOB_RUNS || unreported;
}

/* A job that runs has its limit; one that has not begun as far as the front knows has the time of
 * two and a second more, and the worker gives a sign of life after that. */
static bool exceeds(const struct sim *s, const struct sim_worker *x, const struct sim_worker_job *j)
{
    uint64_t limit_ns = limit_of(s, j->job);
    const struct job *known = job_find(s->f->jobs, j->id);
    bool ran = runs_on(j) && stall_passed_ns(s, j->began_ns) >= limit_ns;
    if (ran || known == NULL || job_adopted(known)) {
        return true;
    }
    uint64_t most_ns = 2 * limit_ns + NS_PER_S;
    bool lives = known->clock.place != 0 || x->heard_ns >= known->dispatched_ns + most_ns;
    return lives && stall_passed_ns(s, known->dispatched_ns) >= most_ns;
}

/* A job that the worker has not taken yet, although it lives. */
static bool waits_for_long(const struct sim *s, const struct sim_worker *x,
                           const struct sim_inbox *in)
{
    uint64_t most_ns = 2 * limit_of(s, in->job);
    return in->schema == &schema_msg_f_job && stall_passed_ns(s, in->sent_ns) >= most_ns &&
           x->heard_ns >= in->sent_ns + most_ns;
}

/* A front that stands still for less than a second takes that for the time of its jobs. Those that
 * run end or pause late, as all that happens meanwhile does: some run for longer than they take. */
void endings_sleep(struct sim *s)
{
    for (unsigned i = 0; i < s->workers && stall_last(s).missed_ns <= STILL_NS; i++) {
        for (const struct sim_worker_job *j = s->worker[i]->job; j != NULL; j = j->next) {
            if (j->job != NULL && j->state == WJOB_RUNS) {
                j->job->slept = true;
            }
        }
    }
}

static void note_overslept(const struct sim *s, const struct sim_worker *x)
{
    for (const struct sim_worker_job *j = x->job; j != NULL; j = j->next) {
        if (j->job != NULL && runs_on(j) &&
            stall_passed_ns(s, j->began_ns) >= limit_of(s, j->job)) {
            j->job->overslept = j->job->slept;
        }
    }
}

static void check_limit(struct sim *s, const struct sim_worker *x)
{
    bool found = x->lied || memory_failed();
    note_overslept(s, x);
    for (const struct sim_worker_job *j = x->job; j != NULL && !found; j = j->next) {
        found = (j->state != WJOB_ENDED || !j->reported) && exceeds(s, x, j);
    }
    for (const struct sim_inbox *in = x->inbox; in != NULL && !found; in = in->next) {
        found = waits_for_long(s, x, in);
    }
    if (!found) {
        sim_fail(s,
                 "overdue: worker %" PRIu64 " is ended for a job that passed its time limit, and "
                 "none did",
                 x->id);
    }
}

/* Has it buffers of several tenants, as the front knows, too? */
static bool has_several(struct sim *s, const struct device *d, const struct sim_worker *x)
{
    const struct sim_client *first = NULL;
    bool several = false;
    for (unsigned i = 0; i < x->buffers && !several; i++) {
        const struct sim_buffer *known = model_find(s, x->buffer[i].id);
        const struct buffer *b = idmap_get(&s->f->buffers, x->buffer[i].id);
        bool lives = known != NULL && b != NULL && !b->freed && b->bytes > 0 &&
                     b->device == d->index && buffer_state(b) == BUFFER_LIVE;
        first = lives && first == NULL ? known->maker : first;
        several = lives && known->maker->tenant != first->tenant;
    }
    return several;
}

/* The limit that a client chose for its job costs no other tenant's buffers. */
static void check_own_limit(struct sim *s, const struct device *d, const struct sim_worker *x,
                            double limit_s)
{
    bool own = limit_s * 1e3 < (double)s->p.time_limit_ms - 1;
    if (own && has_several(s, d, x) && !x->lied && !memory_failed()) {
        sim_fail(s,
                 "overdue: worker %" PRIu64
                 " is ended for a job that passed its client's limit of %.3f s, and has "
                 "buffers of several tenants",
                 x->id, limit_s);
    }
}

/* A job that runs for longer than any may is ended, with its worker. */
void endings_check(struct sim *s, const struct sim_worker *x)
{
    uint64_t since_ns = x->changed_ns > s->stalled_ns ? x->changed_ns : s->stalled_ns;
    since_ns = since_ns > s->accepts_ns ? since_ns : s->accepts_ns;
    uint64_t most_ns = s->p.time_limit_ms * NS_PER_MS + LATE_NS;
    bool excused = x->killed || x->silent || x->cut || x->lied || memory_failed() || !s->accepts;
    if (excused || s->now_ns < since_ns + most_ns) {
        return;
    }
    for (const struct sim_worker_job *j = x->job; j != NULL; j = j->next) {
        if (j->state == WJOB_RUNS && j->said && !j->paused) {
            sim_fail(s,
                     "overdue: job %" PRIu64 " runs in worker %" PRIu64 " for %" PRIu64
                     " ms, and jobs may for %" PRIu64,
                     j->id, x->id, (s->now_ns - j->began_ns) / NS_PER_MS, s->p.time_limit_ms);
        }
    }
}

/* ---- jobs that are to be killed -------------------------------------------------------------- */

/* The client may not know the job's id yet. */
static struct sim_job *find_killed(struct sim *s, uint64_t id)
{
    const struct job *j = job_find(s->f->jobs, id);
    for (unsigned i = 0; i < s->jobs; i++) {
        struct sim_job *k = s->job[i];
        bool same = k->id != 0 ? k->id == id : j != NULL && k->request->seq == j->seq;
        if (k->killed && same) {
            return k;
        }
    }
    return NULL;
}

static void check_kill(struct sim *s, const struct device *d, struct sim_worker *x, uint64_t id)
{
    const struct sim_job *k = find_killed(s, id);
    if (k == NULL && !memory_failed()) {
        sim_fail(s, "kill: worker %" PRIu64 " is ended for job %" PRIu64 ", as no client wants",
                 x->id, id);
    }
    if (x->number < DEVICES_MAX || d->owner == NULL) {
        sim_fail(s,
                 "kill: worker %" PRIu64 ", which tenants share, is ended for job %" PRIu64
                 " of one of them",
                 x->id, id);
    }
    x->ended_for = id;
}

void endings_killed(struct sim *s, const struct device *d, struct sim_worker *x)
{
    uint64_t id = 0;
    double limit_s = 0;
    int whole = 0; /* the text is that to its end */
    if (sscanf(d->ending, "a job passed its time limit of %lf s", &limit_s) == 1) {
        check_limit(s, x);
        check_own_limit(s, d, x, limit_s);
    } else if (strstr(d->ending, "memory back that was recalled") != NULL && !x->lease.owes &&
               !memory_failed()) {
        sim_fail(s,
                 "lease: worker %" PRIu64 " is ended for memory that it does not give back, and "
                 "none was recalled from it",
                 x->id);
    } else if (sscanf(d->ending, "job %" SCNu64 " was to be killed%n", &id, &whole) == 1 &&
               whole > 0) {
        check_kill(s, d, x, id);
    }
}

/* Its client hears that it was cancelled, as it asked for. */
void endings_ended(struct sim *s, const struct sim_worker *x, int status)
{
    struct sim_job *k = x->ended_for != 0 && s->f != NULL ? find_killed(s, x->ended_for) : NULL;
    if (k != NULL && x->killed && status == SIGKILL) {
        k->ended_for = true;
    }
}
