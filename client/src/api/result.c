/* The user's view of a job. */
#include "client/src/api/result.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/src/base/enter.h"
#include "client/src/base/error.h"
#include "client/src/base/text.h"
#include "client/src/objects/job.h"
#include "client/src/session/arena_make.h"
#include "client/src/session/call.h"
#include "client/src/session/callbacks.h"
#include "client/src/session/job_wait.h"
#include "client/src/session/wait.h"
#include "common/clock.h"

#define FIND_PAUSE_NS  (2 * NS_PER_MS) /* the daemon does not have the job yet */
#define FIND_PAUSE_MAX (64 * NS_PER_MS)

/* Locks the job's client if it still has one. Callbacks may ask for results while the client
 * closes, because all its jobs have ended then. */
static int job_enter(const gpud_job *job, struct err *e)
{
    if (job == NULL) {
        return err_set(e, ERR_INVALID, "the job is NULL");
    }
    return job->client != NULL ? client_enter_closing(job->client, e) : 0;
}

static void job_leave(const gpud_job *job)
{
    if (job->client != NULL) {
        client_leave(job->client);
    }
}

static int own_error(const gpud_job *job, struct err *e)
{
    if (job->error.code != 0) {
        *e = job->error;
    }
    return job->error.code;
}

/* Takes answers that have arrived. A caller that does not wait gets a check of the socket, too. */
static void take_arrived(struct gpud_client *c, uint64_t timeout_ns)
{
    if (timeout_ns == 0) {
        client_poll(c);
    } else {
        client_glance(c);
    }
}

int gpud_wait(gpud_job *job, uint64_t timeout_ns)
{
    struct err e;
    err_init(&e);
    int rc = job_enter(job, &e);
    if (rc != 0) {
        return error_report(rc, &e);
    }
    struct gpud_client *c = job->client;
    if (c == NULL) {
        return error_report(own_error(job, &e), &e);
    }
    if (job->state != JOB_ENDED) {
        take_arrived(c, timeout_ns);
    }
    rc = job_wait(c, job, ns_add(clock_now_ns(), timeout_ns), &e);
    if (rc == 0 && timeout_ns == GPUD_FOREVER) { /* the caller accepts a longer wait */
        arena_stage_wished(c);
    }
    client_callbacks(c); /* one of them may free the job */
    client_leave(c);
    return error_report(rc, &e);
}

struct any {
    gpud_job *const *jobs;
    uint32_t count;
    uint32_t index; /* of a job that has ended */
};

static bool any_ended(void *arg)
{
    struct any *any = arg;
    for (uint32_t i = 0; i < any->count; i++) {
        if (any->jobs[i] != NULL && any->jobs[i]->state == JOB_ENDED) {
            any->index = i;
            return true;
        }
    }
    return false;
}

static const gpud_job *first_of(const struct any *any)
{
    const gpud_job *first = NULL;
    for (uint32_t i = 0; i < any->count && first == NULL; i++) {
        first = any->jobs[i];
    }
    return first;
}

int gpud_wait_any(gpud_job *const *jobs, uint32_t count, uint64_t timeout_ns, uint32_t *ret_index)
{
    struct err e = ERR_INIT;
    struct any any = {.jobs = jobs, .count = jobs != NULL ? count : 0};
    const gpud_job *first = first_of(&any);
    int rc = job_enter(first, &e);
    if (rc != 0) {
        return error_report(rc, &e);
    }
    struct gpud_client *c = first->client;
    for (uint32_t i = 0; i < any.count && rc == 0; i++) {
        if (jobs[i] != NULL && jobs[i]->client != c) {
            rc = err_set(&e, ERR_INVALID, "jobs of several clients");
        }
    }
    if (rc == 0 && c == NULL) {
        (void)any_ended(&any);
    } else if (rc == 0) {
        if (!any_ended(&any)) {
            take_arrived(c, timeout_ns);
        }
        rc = client_wait(c, any_ended, &any, ns_add(clock_now_ns(), timeout_ns), &e);
        client_callbacks(c);
    }
    if (c != NULL) {
        client_leave(c);
    }
    if (rc == 0 && ret_index != NULL) {
        *ret_index = any.index;
    }
    return error_report(rc, &e);
}

bool gpud_job_done(const gpud_job *job)
{
    struct err e = ERR_INIT;
    if (job_enter(job, &e) != 0) {
        return false;
    }
    bool ended = job->state == JOB_ENDED;
    job_leave(job);
    return ended;
}

int gpud_job_error(const gpud_job *job, gpud_error *ret_error)
{
    struct err e = ERR_INIT;
    int rc = job_enter(job, &e);
    if (rc == 0) {
        gpud_error error = {.size = sizeof error};
        error_fill(&error, &job->error);
        rc = desc_return(ret_error, &error, sizeof error, &e);
        job_leave(job);
    }
    return error_report(rc, &e);
}

uint64_t gpud_job_id(const gpud_job *job)
{
    struct err e = ERR_INIT;
    if (job_enter(job, &e) != 0) {
        return 0;
    }
    if (job->client != NULL && job->quiet && !job->held) {
        /* a later call returns the id that this requests */
        (void)job_find(job->client, (gpud_job *)(uintptr_t)job, &e);
    }
    uint64_t id = job->id;
    job_leave(job);
    return id;
}

/* 0 if the job has succeeded; its error if it failed; STATE if it has not ended. */
static int ended_well(const gpud_job *job, struct err *e)
{
    return job->state == JOB_ENDED ? own_error(job, e)
                                   : err_set(e, ERR_STATE, "the job has not ended");
}

static void output_return(struct bytes data, const void **ret_data, size_t *ret_bytes)
{
    if (ret_data != NULL) {
        *ret_data = data.data;
    }
    if (ret_bytes != NULL) {
        *ret_bytes = data.size;
    }
}

int gpud_job_output(const gpud_job *job, uint32_t step, uint32_t arg, const void **ret_data,
                    size_t *ret_bytes)
{
    struct err e = ERR_INIT;
    struct bytes data = {0};
    int rc = job_enter(job, &e);
    if (rc != 0) {
        return error_report(rc, &e);
    }
    rc = ended_well(job, &e);
    if (rc == 0) {
        /* the cast adds a cached copy to the job; its visible state does not change */
        rc = job_output_aligned((gpud_job *)(uintptr_t)job, step, arg, &data, &e);
    }
    if (rc == 0) {
        output_return(data, ret_data, ret_bytes);
    }
    job_leave(job);
    return error_report(rc, &e);
}

/* For example "cublas, portable": each name once, in the order of the steps. */
void timings_served_by(struct proto_list timings, char *out, size_t size)
{
    struct proto_timing timing;
    size_t used = 0;
    out[0] = '\0';
    for (struct proto_iter it = proto_iter_of(timings);
         proto_list_next(&it, &schema_timing, &timing);) {
        char name[GPUD_NAME];
        text_copy(name, sizeof name, timing.by);
        if (name[0] == '\0' || strstr(out, name) != NULL || used + strlen(name) + 3 > size) {
            continue;
        }
        used += (size_t)snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "", name);
    }
}

int gpud_job_timing(const gpud_job *job, gpud_job_times *ret_times)
{
    struct err e = ERR_INIT;
    int rc = job_enter(job, &e);
    if (rc != 0) {
        return error_report(rc, &e);
    }
    if (job->state != JOB_ENDED) {
        rc = err_set(&e, ERR_STATE, "the job has not ended");
    } else {
        gpud_job_times times = {
            .device = job->result.device > 0 ? job->result.device - 1 : 0,
            .queued_ns = job->result.queued_ns,
            .executed_ns = job->result.executed_ns,
            .replays = job->result.replays,
            .step_count = (uint32_t)job->result.timings.count,
        };
        timings_served_by(job->result.timings, times.implementation, sizeof times.implementation);
        rc = desc_return(ret_times, &times, sizeof times, &e);
    }
    job_leave(job);
    return error_report(rc, &e);
}

int gpud_job_step_time(const gpud_job *job, uint32_t index, uint32_t *ret_step,
                       uint64_t *ret_begin_ns, uint64_t *ret_end_ns)
{
    struct err e = ERR_INIT;
    struct proto_timing timing;
    int rc = job_enter(job, &e);
    if (rc != 0) {
        return error_report(rc, &e);
    }
    rc = err_set(&e, ERR_NOT_FOUND, "the job has no timing %u", index);
    uint32_t at = 0;
    for (struct proto_iter it = proto_iter_of(job->result.timings);
         proto_list_next(&it, &schema_timing, &timing); at++) {
        if (at == index) {
            *ret_step = (uint32_t)timing.step;
            *ret_begin_ns = timing.begin_ns;
            *ret_end_ns = timing.end_ns;
            rc = 0;
            break;
        }
    }
    job_leave(job);
    return error_report(rc, &e);
}

static bool id_known(void *arg)
{
    const struct gpud_job *job = arg;
    return job->state == JOB_ENDED || job->id != 0 ||
           (job->quiet && job->find == NULL && job->req.id != 0);
}

static bool has_ended(void *arg)
{
    return ((const struct gpud_job *)arg)->state == JOB_ENDED;
}

/* Waits until the job has an id or has ended. Asks again if the request overtook the job. */
static int wait_for_id(struct gpud_job *job, uint64_t deadline_ns, struct err *e)
{
    struct gpud_client *c = job->client;
    int rc = 0;
    while (rc == 0 && job->state != JOB_ENDED && job->id == 0) {
        rc = job->quiet ? job_find(c, job, e) : 0;
        rc = rc == 0 ? client_wait(c, id_known, job, deadline_ns, e) : rc;
        if (rc == 0 && job->state != JOB_ENDED && job->id == 0) {
            struct err pause = ERR_INIT;
            (void)client_wait(c, has_ended, job, client_sooner(deadline_ns, FIND_PAUSE_NS), &pause);
        }
    }
    return rc;
}

/* Ends a job whose request is not sent, or is to be sent again; needs no daemon. */
static bool cancel_here(struct gpud_job *job)
{
    bool ended = job->id == 0 && job_cancel_here(job->client, job);
    if (ended) {
        client_poll(job->client); /* wakes threads that wait for the job */
    }
    return ended;
}

/* Cancels by the number of the SUBMIT, because the job may not be admitted yet. A request that
 * overtook the SUBMIT is repeated. A job whose SUBMIT is not sent, or was refused, ends here. */
static int cancel_by_number(struct gpud_job *job, bool kill, uint64_t deadline_ns, struct err *e)
{
    struct gpud_client *c = job->client;
    for (uint64_t pause_ns = FIND_PAUSE_NS;; pause_ns *= pause_ns < FIND_PAUSE_MAX ? 2 : 1) {
        struct msg_cancel msg = {
            .job = job->id, .number = job->id == 0 ? job->req.seq : 0, .kill = kill};
        struct msg_done reply;
        struct message *m = NULL;
        if (cancel_here(job)) {
            return 0;
        }
        int rc = client_call_until(c, deadline_ns, &schema_msg_cancel, &msg, CALL_PLAIN,
                                   &schema_msg_done, &reply, &m, e);
        message_unref(m);
        if (rc != ERR_NOT_FOUND || job->state == JOB_ENDED) {
            return job->state == JOB_ENDED ? 0 : rc;
        }
        err_init(e);
        rc = client_wait(c, has_ended, job, client_sooner(deadline_ns, pause_ns), e);
        if (rc != ERR_TIMEOUT || clock_now_ns() >= deadline_ns) {
            return rc;
        }
    }
}

static int cancel(struct gpud_job *job, bool kill, struct err *e)
{
    struct gpud_client *c = job->client;
    if (job->state == JOB_ENDED) {
        return 0;
    }
    if (kill && client_may_kill(c, e) != 0) {
        return e->code;
    }
    if (job->held) {
        return err_set(e, ERR_STATE, "a job submitted with GPUD_SUBMIT_HELD has no id yet");
    }
    uint64_t deadline_ns = client_deadline(c);
    if (job->id == 0 && c->session.minor >= MINOR_RANGES) {
        return cancel_by_number(job, kill, deadline_ns, e);
    }
    int rc = ERR_TIMEOUT;
    while (rc == ERR_TIMEOUT) { /* the daemon may refuse the job again meanwhile */
        if (cancel_here(job)) {
            return 0;
        }
        err_init(e);
        rc = wait_for_id(job, client_sooner(deadline_ns, FIND_PAUSE_MAX), e);
        if (rc == ERR_TIMEOUT && clock_now_ns() >= deadline_ns) {
            return rc;
        }
    }
    if (rc != 0 || job->state == JOB_ENDED) {
        return rc;
    }
    struct msg_cancel msg = {.job = job->id, .kill = kill};
    struct msg_done reply;
    struct message *m = NULL;
    rc = client_call_until(c, deadline_ns, &schema_msg_cancel, &msg, CALL_PLAIN, &schema_msg_done,
                           &reply, &m, e);
    message_unref(m);
    if (rc == ERR_NOT_FOUND) { /* it has ended, so long ago that the daemon lists it no more */
        err_init(e);
        rc = 0;
    }
    return rc;
}

static int enter_and_cancel(gpud_job *job, bool kill)
{
    struct err e = ERR_INIT;
    int rc = job_enter(job, &e);
    if (rc == 0) {
        rc = cancel(job, kill, &e);
        job_leave(job);
    }
    return error_report(rc, &e);
}

int gpud_cancel(gpud_job *job)
{
    return enter_and_cancel(job, false);
}

int gpud_kill(gpud_job *job)
{
    return enter_and_cancel(job, true);
}

void gpud_job_free(gpud_job *job)
{
    if (job == NULL) {
        return;
    }
    struct gpud_client *c = job->client;
    if (c == NULL) {
        job_abandon(job);
    } else if (!origin_here(&c->origin)) {
        job_step(job, JOB_RELEASED); /* lists may be inconsistent here: gpud_close frees it */
    } else {
        (void)pthread_mutex_lock(&c->lock); /* also while it closes: callbacks run then */
        job_release(c, job);
        client_leave(c);
    }
}
