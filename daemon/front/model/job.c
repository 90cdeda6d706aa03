#include "daemon/front/model/job.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/shape.h"
#include "daemon/front/model/device.h"
#include "daemon/front/model/program.h"
#include "daemon/front/model/request.h"
#include "daemon/front/model/session.h"
#include "proto/codec.h"

bool job_put(struct job **table, struct job *j)
{
    HASH_ADD_BYHASHVALUE(hh, *table, id, sizeof j->id, hash_number(j->id), j);
    return HASH_ENTERED(j->hh);
}

struct job *job_find(struct job *table, uint64_t id)
{
    struct job *j = NULL;
    HASH_FIND_BYHASHVALUE(hh, table, &id, sizeof id, hash_number(id), j);
    return j;
}

bool job_join(struct job *j, struct session *s)
{
    HASH_ADD_BYHASHVALUE(hh_seq, s->own_jobs, seq, sizeof j->seq, hash_number(j->seq), j);
    if (!HASH_ENTERED(j->hh_seq)) {
        return false;
    }
    j->session = s;
    s->jobs++;
    return true;
}

void job_part(struct job *j)
{
    if (j->session != NULL) {
        j->session->jobs--;
        HASH_DELETE(hh_seq, j->session->own_jobs, j);
        j->session = NULL;
    }
}

struct job *job_of_request(const struct session *s, uint64_t seq)
{
    struct job *j = NULL;
    HASH_FIND_BYHASHVALUE(hh_seq, s->own_jobs, &seq, sizeof seq, hash_number(seq), j);
    return j != NULL && !job_ended(j) ? j : NULL;
}

bool job_ended(const struct job *j)
{
    return j->state >= JOB_DONE;
}

bool job_adopted(const struct job *j)
{
    return j->origin >= ORIGIN_ADOPTED;
}

void job_set_state(struct job *j, enum job_state state, uint64_t now_ns)
{
    job_state_step(&j->state, state);
    j->wait = WAIT_NOTHING;
    switch (state) {
    case JOB_QUEUED: /* again: its worker ended, or the frame could not be sent */
        j->dispatched_ns = 0;
        j->started_ns = 0;
        j->clock = (struct job_clock){0};
        j->ended_ns = 0;
        break;
    case JOB_DISPATCHED:
        j->dispatched_ns = now_ns;
        break;
    case JOB_RUNNING:
        j->started_ns = now_ns;
        job_resume(j, now_ns);
        break;
    default:
        if (j->ended_ns == 0) { /* unless the worker has reported the time */
            j->ended_ns = now_ns;
        }
        break;
    }
}

uint64_t job_ran_ns(const struct job *j, uint64_t now_ns)
{
    uint64_t ended = j->ended_ns != 0 ? j->ended_ns : now_ns;
    return j->started_ns != 0 && ended > j->started_ns ? ended - j->started_ns : 0;
}

void job_set_wait(struct job *j, enum job_wait wait)
{
    job_wait_check(j->state, wait);
    j->wait = wait;
}

void job_set_inputs(struct job *j, enum job_inputs inputs, const struct job *spoiler)
{
    job_inputs_step(&j->inputs.state, inputs);
    j->inputs.spoiler = spoiler != NULL ? spoiler->id : 0;
    j->inputs.code = spoiler != NULL ? spoiler->error.code : 0;
}

void job_resume(struct job *j, uint64_t now_ns)
{
    if (j->device != NULL && j->clock.place == 0) {
        j->clock.place = ++j->device->starts;
        j->clock.turned_ns = now_ns;
    }
}

/* A device may report that a job runs while the job waits for units that an earlier job has. */
static bool comes_after(const struct job *j)
{
    const struct job *k = j->device != NULL && j->clock.place != 0 ? j->device->inflight : NULL;
    while (k != NULL && (k->clock.place == 0 || k->clock.place >= j->clock.place)) {
        k = k->device_next;
    }
    return k != NULL;
}

/* When the time of a running job that comes after no other began to count. */
static uint64_t own_since_ns(const struct job *j)
{
    return j->clock.clear_ns > j->clock.turned_ns ? j->clock.clear_ns : j->clock.turned_ns;
}

void job_pause(struct job *j, uint64_t now_ns)
{
    if (j->clock.place == 0) {
        return;
    }
    if (!comes_after(j) && now_ns > own_since_ns(j)) {
        j->clock.spent_ns += now_ns - own_since_ns(j);
    }
    j->clock.place = 0;
    j->clock.turned_ns = now_ns;
}

/* When the time began until which a job that is not seen to run has to. */
static uint64_t waits_since_ns(const struct job *j)
{
    uint64_t from = j->clock.turned_ns > j->dispatched_ns ? j->clock.turned_ns : j->dispatched_ns;
    const struct device *d = j->device;
    if (d != NULL) { /* earlier jobs may have run since then */
        uint64_t ran = d->inflight == j && d->first_ns < d->ran_ns ? d->first_ns : d->ran_ns;
        from = ran > from ? ran : from;
    }
    return from;
}

void job_stood_still(struct job *j, uint64_t now_ns, uint64_t away_ns)
{
    uint64_t since = ns_add(j->clock.place != 0 ? own_since_ns(j) : waits_since_ns(j), away_ns);
    j->clock.turned_ns = since < now_ns ? since : now_ns;
}

uint64_t job_limit_ns(const struct job *j)
{
    return j->answer != ANSWER_OPEN && j->ceiling_ns > j->limit_ns ? j->ceiling_ns : j->limit_ns;
}

uint64_t job_overdue_ns(const struct job *j)
{
    uint64_t limit = job_limit_ns(j);
    if (j->wait == WAIT_MEMORY || comes_after(j)) {
        return NS_NEVER;
    }
    if (j->clock.place != 0) {
        return ns_add(own_since_ns(j), limit > j->clock.spent_ns ? limit - j->clock.spent_ns : 0);
    }
    return ns_add(waits_since_ns(j), ns_add(limit, ns_add(limit, NS_PER_S)));
}

int64_t job_rank(const struct job *j)
{
    int64_t level = j->priority;
    level = level > PRIORITY_MAX ? PRIORITY_MAX : level < -PRIORITY_MAX ? -PRIORITY_MAX : level;
    uint64_t patience = ns_add(j->submitted_ns, RANK_SPAN_NS);
    int64_t due = (int64_t)(j->deadline_ns < patience ? j->deadline_ns : patience);
    int64_t within = due - level * PRIORITY_LEVEL_NS;
    within = within < 0 ? 0 : within >= CLASS_RANKS ? CLASS_RANKS - 1 : within;
    return (int64_t)j->job_class * CLASS_RANKS + within;
}

unsigned job_rank_class(const struct job *j)
{
    return j->sched.rank < 0 ? CLASS_FIRST : (unsigned)(j->sched.rank / CLASS_RANKS);
}

bool job_repeatable(const struct job *j)
{
    if (job_adopted(j)) {
        return false;
    }
    for (unsigned i = 0; i < j->work.use_count; i++) {
        if ((j->work.uses[i].access & ACCESS_OUT) != 0) {
            return false;
        }
    }
    return !work_changes_arena(&j->work);
}

void job_finish(struct job *j)
{
    work_finish(&j->work);
    program_unref(j->program);
    request_destroy(j->request);
    free(j->timings);
    free(j->result);
}

void job_destroy(struct job *j)
{
    if (j != NULL) {
        job_finish(j);
        free(j);
    }
}

int job_timings(const struct job *j, struct capbuf *out, struct err *e)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < j->timing_count; i++) {
        const struct timing *from = &j->timings[i];
        struct proto_timing t = {from->step, from->begin_ns, from->end_ns, bytes_str(from->by)};
        rc = proto_list_add(&schema_timing, &t, out, e);
    }
    return rc;
}
