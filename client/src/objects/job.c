#include "client/src/objects/job.h"

#include <stdlib.h>
#include <string.h>

#include "client/src/base/error.h"
#include "client/src/base/events.h"
#include "client/src/base/text.h"
#include "client/src/link/fillers.h"
#include "client/src/link/lane.h"
#include "client/src/link/route.h"
#include "client/src/objects/arena.h"
#include "client/src/objects/objects.h"
#include "client/src/wire/reply.h"
#include "common/clock.h"
#include "common/steps.h"

#define OUTPUT_ALIGN 64u /* bytes: a cache line, and wide enough for every vector type */
#define SUBMIT_FLAGS                                                                               \
    (GPUD_SUBMIT_BLOCK | GPUD_SUBMIT_HELD | GPUD_SUBMIT_DETACHED | GPUD_SUBMIT_ONCE)

/* A result that overtook the ACCEPTED of its job. Each asynchronous job provides room for one, so
 * there is room for every such result and for no others. */
struct early {
    struct early *next;
    struct message *m; /* NULL: free */
    struct proto_result result;
};

/* A request for the id of a quiet job. */
struct find {
    struct request req;   /* first */
    struct gpud_job *job; /* NULL: it was freed */
};

/* ---- lists --------------------------------------------------------------------------------- */

static void queue_push(struct job_list *l, struct gpud_job *job)
{
    job->queue = l;
    job->queue_prev = l->last;
    job->queue_next = NULL;
    if (l->last != NULL) {
        l->last->queue_next = job;
    } else {
        l->first = job;
    }
    l->last = job;
}

static void queue_remove(struct gpud_job *job)
{
    struct job_list *l = job->queue;
    if (l == NULL) {
        return;
    }
    if (job->queue_prev != NULL) {
        job->queue_prev->queue_next = job->queue_next;
    } else {
        l->first = job->queue_next;
    }
    if (job->queue_next != NULL) {
        job->queue_next->queue_prev = job->queue_prev;
    } else {
        l->last = job->queue_prev;
    }
    job->queue = NULL;
}

static struct gpud_job **bucket_of(struct gpud_client *c, uint64_t id)
{
    return &c->bucket[(id ^ id >> 32) % JOB_BUCKETS];
}

static void bucket_remove(struct gpud_client *c, struct gpud_job *job)
{
    if (job->id == 0) {
        return;
    }
    for (struct gpud_job **at = bucket_of(c, job->id); *at != NULL; at = &(*at)->bucket_next) {
        if (*at == job) {
            *at = job->bucket_next;
            return;
        }
    }
}

static struct gpud_job *bucket_find(struct gpud_client *c, uint64_t id)
{
    struct gpud_job *job = *bucket_of(c, id);
    while (job != NULL && job->id != id) {
        job = job->bucket_next;
    }
    return job;
}

static void jobs_link(struct gpud_client *c, struct gpud_job *job)
{
    job->client = c;
    job->prev = NULL;
    job->next = c->jobs;
    if (c->jobs != NULL) {
        c->jobs->prev = job;
    }
    c->jobs = job;
    job->order = ++c->jobs_made;
    c->jobs_live++;
}

static void jobs_unlink(struct gpud_client *c, struct gpud_job *job)
{
    if (job->prev != NULL) {
        job->prev->next = job->next;
    } else {
        c->jobs = job->next;
    }
    if (job->next != NULL) {
        job->next->prev = job->prev;
    }
}

/* ---- early results -------------------------------------------------------------------------- */

static void early_lend(struct gpud_client *c, struct gpud_job *job)
{
    struct early *early = job->early;
    if (early != NULL) {
        job->early = NULL;
        job->lent = true;
        early->next = c->early;
        c->early = early;
    }
}

/* Removes one room from the list, because the job lent one: a free one if there is any. */
static void early_return(struct gpud_client *c, struct gpud_job *job)
{
    if (!job->lent) {
        return;
    }
    struct early **at = &c->early;
    while ((*at)->m != NULL && (*at)->next != NULL) {
        at = &(*at)->next;
    }
    struct early *early = *at;
    *at = early->next;
    message_unref(early->m); /* no room is free: drops the result of a job that was freed */
    free(early);
    job->lent = false;
}

static void early_add(struct gpud_client *c, const struct proto_result *result, struct message *m)
{
    struct early *early = c->early;
    while (early != NULL && early->m != NULL) {
        early = early->next;
    }
    if (early != NULL) { /* otherwise no job waits for an early result */
        early->m = message_ref(m);
        early->result = *result;
    }
}

/* Takes the early result of a job. The caller unrefs the message. NULL: none has arrived. */
static struct message *early_take(struct gpud_client *c, uint64_t id,
                                  struct proto_result *ret_result)
{
    struct early *early = c->early;
    while (early != NULL && (early->m == NULL || early->result.job != id)) {
        early = early->next;
    }
    if (early == NULL) {
        return NULL;
    }
    struct message *m = early->m;
    *ret_result = early->result;
    early->m = NULL;
    return m;
}

/* ---- end ----------------------------------------------------------------------------------- */

static const unsigned steps[] = {
    [JOB_LIVE] = STEP_TO(JOB_ENDED) | STEP_TO(JOB_RELEASED),
    [JOB_ENDED] = STEP_TO(JOB_RELEASED),
    [JOB_RELEASED] = 0,
};

void job_step(struct gpud_job *job, enum job_state to)
{
    step_assert(steps, job->state, to);
    job->state = to;
}

static void job_destroy(struct gpud_job *job)
{
    if (job->find != NULL) {
        job->find->job = NULL;
    }
    message_unref(job->reply);
    request_finish(&job->req);
    free(job->early);
    free(job->sinks);
    free(job->uses);
    while (job->aligned != NULL) {
        struct aligned *a = job->aligned;
        job->aligned = a->next;
        free(a->data);
        free(a);
    }
    free(job);
}

bool job_output(const struct gpud_job *job, uint32_t step, uint32_t arg, struct bytes *ret_data)
{
    struct proto_output out;
    for (struct proto_iter it = proto_iter_of(job->result.outputs);
         proto_list_next(&it, &schema_output, &out);) {
        if (out.step == step && out.arg == arg) {
            *ret_data = out.data;
            return true;
        }
    }
    return false;
}

static struct aligned *aligned_make(struct gpud_job *job, uint32_t step, uint32_t arg,
                                    struct bytes data)
{
    struct aligned *a = calloc(1, sizeof *a);
    if (a == NULL || posix_memalign(&a->data, OUTPUT_ALIGN, data.size) != 0) {
        free(a);
        return NULL;
    }
    memcpy(a->data, data.data, data.size);
    a->step = step;
    a->arg = arg;
    a->next = job->aligned;
    job->aligned = a;
    return a;
}

int job_output_aligned(struct gpud_job *job, uint32_t step, uint32_t arg, struct bytes *ret_data,
                       struct err *e)
{
    struct bytes data = {0};
    if (!job_output(job, step, arg, &data)) {
        return err_set(e, ERR_NOT_FOUND, "step %u, argument %u has no output", step, arg);
    }
    if (data.size > 0 && (uintptr_t)data.data % OUTPUT_ALIGN != 0) {
        struct aligned *a = job->aligned;
        while (a != NULL && (a->step != step || a->arg != arg)) {
            a = a->next;
        }
        a = a != NULL ? a : aligned_make(job, step, arg, data);
        if (a == NULL) {
            return err_set(e, ERR_NOMEM, "no memory for an output of %zu bytes", data.size);
        }
        data.data = a->data;
    }
    *ret_data = data;
    return 0;
}

static void sinks_fill(struct gpud_job *job)
{
    for (size_t i = 0; i < job->sink_count && job->error.code == 0; i++) {
        const struct sink *sink = &job->sinks[i];
        struct bytes data = {0};
        bool found = job_output(job, sink->step, sink->arg, &data);
        if ((!found && sink->bytes > 0) || data.size != sink->bytes) {
            (void)err_set(&job->error, ERR_PROTOCOL,
                          "step %u, argument %u: the output has %zu bytes, not %zu", sink->step,
                          sink->arg, data.size, sink->bytes);
            job->error.effects = ERR_EFFECTS_YES;
        } else if (data.size > 0) {
            memcpy(sink->data, data.data, data.size);
        }
    }
}

/* May a device still write for the job? The daemon answers before the device is done where the job
 * passed a limit, and where a worker does not end. A session that is over may have left it running.
 * A deadline that passes in the queue of the daemon has no device. */
static bool may_run_on(const struct gpud_job *job)
{
    switch (job->error.code) {
    case ERR_TIME_LIMIT:
    case ERR_WORKER_LOST:
        return true;
    case ERR_DEADLINE:
        return job->unsure || job->doubtful || job->result.device != 0;
    default:
        return job->unsure || job->doubtful;
    }
}

static void job_end(struct gpud_client *c, struct gpud_job *job)
{
    queue_remove(job);
    bucket_remove(c, job);
    early_return(c, job);
    requests_end(&c->requests, &job->req);
    request_finish(&job->req);
    bool wanted = job->state != JOB_RELEASED;
    c->jobs_live--;
    arena_uses_end(c, job->uses, job->use_count, job->error.code == 0 && wanted, may_run_on(job));
    objects_reap(c);
    if (!wanted) {
        jobs_unlink(c, job);
        job_destroy(job);
        return;
    }
    job_step(job, JOB_ENDED);
    if (job->doubtful && job->error.code != 0 && job->error.effects == ERR_EFFECTS_NONE) {
        job->error.effects = ERR_EFFECTS_MAYBE;
    }
    sinks_fill(job);
    if (job->done != NULL) {
        queue_push(&c->ended, job);
    }
}

static void job_end_result(struct gpud_client *c, struct gpud_job *job,
                           const struct proto_result *result, struct message *m)
{
    job->result = *result;
    job->reply = message_ref(m);
    if (job->id == 0) {
        job->id = result->job;
    }
    if (result->code != 0) {
        struct msg_error error = {
            .code = result->code,
            .vendor = result->vendor,
            .step = result->step,
            .arg = result->arg,
            .effects = result->effects,
            .retry_after_ns = result->retry_after_ns,
            .text = result->text,
        };
        proto_error_to(&error, &job->error);
    }
    job_end(c, job);
}

static void job_end_error(struct gpud_client *c, struct gpud_job *job, const struct err *e)
{
    job->error = *e;
    job_end(c, job);
}

/* ---- answers ------------------------------------------------------------------------------- */

void job_result(struct gpud_client *c, const struct proto_result *result, struct message *m)
{
    struct gpud_job *job = bucket_find(c, result->job);
    if (job != NULL) {
        job_end_result(c, job, result, m);
    } else {
        early_add(c, result, m);
    }
}

static void accepted(struct gpud_client *c, struct gpud_job *job, uint64_t id)
{
    if (job->id == id || id == 0) {
        return; /* the same answer again, after a reconnection */
    }
    requests_accepted(&c->requests, &job->req);
    bucket_remove(c, job);
    job->id = id;
    struct gpud_job **bucket = bucket_of(c, id);
    job->bucket_next = *bucket;
    *bucket = job;
    struct proto_result result;
    struct message *m = early_take(c, id, &result);
    if (m != NULL) {
        job_end_result(c, job, &result, m);
        message_unref(m);
    }
}

static void refused(struct gpud_client *c, struct gpud_job *job, const struct err *e)
{
    if (e->code == ERR_STATE && job->id != 0) {
        return; /* accepted before, and sent again: EVENTS brings its result */
    }
    job_end_error(c, job, e);
}

static void results(struct gpud_client *c, struct gpud_job *job, struct message *m)
{
    struct err failed;
    err_init(&failed);
    struct msg_results msg;
    struct proto_result result;
    if (reply_decode_first(m, &schema_msg_results, &msg, &schema_result, &result, &failed) != 0) {
        refused(c, job, &failed);
        return;
    }
    if (msg.results.count == 0) {
        (void)err_set(&failed, ERR_PROTOCOL, "an answer without results");
        job_end_error(c, job, &failed);
        return;
    }
    job_end_result(c, job, &result, m);
}

static void job_answered(struct gpud_client *c, struct request *r, struct message *m,
                         const struct err *e)
{
    struct gpud_job *job = (struct gpud_job *)r;
    if (m == NULL) {
        job->error = *e;
        job->error.effects = r->sent ? ERR_EFFECTS_MAYBE : ERR_EFFECTS_NONE;
        job->unsure = r->sent;
        job_end(c, job);
        return;
    }
    if (proto_kind(message_view(m)) != MSG_KIND_ACCEPTED) {
        results(c, job, m);
        return;
    }
    struct msg_accepted msg;
    struct err failed;
    err_init(&failed);
    if (reply_decode(m, &schema_msg_accepted, &msg, &failed) == 0) {
        accepted(c, job, msg.job);
    } else {
        job_end_error(c, job, &failed);
    }
}

/* ---- its id -------------------------------------------------------------------------------- */

static void find_answered(struct gpud_client *c, struct request *r, struct message *m,
                          const struct err *e)
{
    struct find *find = (struct find *)r;
    struct gpud_job *job = find->job;
    struct msg_accepted msg;
    struct err failed = ERR_INIT;
    (void)e;
    requests_end(&c->requests, r);
    if (job != NULL) {
        job->find = NULL;
        if (m != NULL && job->state != JOB_ENDED &&
            reply_decode(m, &schema_msg_accepted, &msg, &failed) == 0) {
            job->id = msg.job; /* in no bucket, because no EVENTS has its result */
        }
    }
    request_finish(r);
    free(find);
}

int job_find(struct gpud_client *c, struct gpud_job *job, struct err *e)
{
    if (job->state == JOB_ENDED || job->id != 0 || job->find != NULL || job->req.id == 0) {
        return 0;
    }
    struct msg_job_find msg = {.number = job->req.seq};
    struct find *find = calloc(1, sizeof *find);
    if (find == NULL) {
        return err_set(e, ERR_NOMEM, "no memory to ask for a job's id");
    }
    find->req.answered = find_answered;
    find->job = job;
    int rc = request_encode(&find->req, &schema_msg_job_find, &msg, e);
    if (rc == 0) {
        rc = requests_add(&c->requests, &find->req, false,
                          e); /* not sequenced, so it waits for no number */
    }
    if (rc != 0) {
        request_finish(&find->req);
        free(find);
        return rc;
    }
    job->find = find;
    session_send(c, &find->req);
    return 0;
}

bool job_cancel_here(struct gpud_client *c, struct gpud_job *job)
{
    struct err e = ERR_INIT;
    if (!session_withdraw(c, &job->req)) {
        return false;
    }
    (void)err_set(&e, ERR_CANCELLED, "cancelled before it was admitted");
    job_end_error(c, job, &e);
    return true;
}

/* ---- start --------------------------------------------------------------------------------- */

static int submit(struct gpud_client *c, struct gpud_job *job, struct err *e)
{
    int rc = requests_add(&c->requests, &job->req, true, e);
    job->lineage = c->session.lineage;
    if (rc == 0) {
        session_send(c, &job->req);
    }
    return rc;
}

int submit_options_read(const gpud_submit_options *given, gpud_submit_options *ret_options,
                        struct err *e)
{
    gpud_submit_options options = {.size = sizeof options};
    if (given != NULL) {
        if (given->size < sizeof given->size || given->size > 4096) {
            return err_set(e, ERR_INVALID,
                           "gpud_submit_options.size is %zu: set it to the struct's sizeof",
                           given->size);
        }
        memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
    }
    if ((options.flags & ~(uint32_t)SUBMIT_FLAGS) !=
        0) { /* a flag of a newer header: the job would lack a property that the caller wants */
        return err_set(e, ERR_INVALID, "gpud_submit_options.flags has unknown flags: %#x",
                       options.flags);
    }
    if (options.job_class > GPUD_CLASS_BATCH) {
        return err_set(e, ERR_INVALID,
                       "gpud_submit_options.job_class is %u, not of enum gpud_class",
                       options.job_class);
    }
    *ret_options = options;
    return 0;
}

static bool uses_take(struct gpud_job *job, const struct host_uses *uses)
{
    if (uses == NULL || uses->count == 0) {
        return true;
    }
    job->uses = malloc(uses->count * sizeof *job->uses);
    if (job->uses != NULL) {
        memcpy(job->uses, uses->use, uses->count * sizeof *job->uses);
        job->use_count = uses->count;
    }
    return job->uses != NULL;
}

static int job_make(struct msg_submit *msg, const struct sink *sinks, size_t sink_count,
                    const struct host_uses *uses, const gpud_submit_options *o, bool quiet,
                    struct gpud_job **ret_job, struct err *e)
{
    msg->flags = quiet ? 0 : SUBMIT_ASYNC;
    msg->flags |= (o->flags & GPUD_SUBMIT_DETACHED) != 0 ? SUBMIT_DETACHED : 0;
    msg->flags |= (o->flags & GPUD_SUBMIT_BLOCK) != 0 ? SUBMIT_BLOCK : 0;
    msg->deadline_ns = o->deadline_ns;
    msg->limit_ns = o->time_limit_ns;
    msg->priority = o->priority;
    msg->job_class = o->job_class;
    msg->device = o->device;
    msg->trace_id = o->trace_id;
    char room[PROTO_LABEL_MAX];
    msg->label = text_mended(bytes_str(o->label), room);
    struct gpud_job *job = calloc(1, sizeof *job);
    if (job == NULL || !uses_take(job, uses)) {
        free(job);
        return err_set(e, ERR_NOMEM, "no memory for a job");
    }
    if (sink_count > 0) {
        job->sinks = malloc(sink_count * sizeof *sinks);
        if (job->sinks == NULL) {
            job_destroy(job);
            return err_set(e, ERR_NOMEM, "no memory for a job");
        }
        memcpy(job->sinks, sinks, sink_count * sizeof *sinks);
        job->sink_count = sink_count;
    }
    if ((msg->flags & SUBMIT_ASYNC) != 0) {
        job->early = calloc(1, sizeof *job->early);
        if (job->early == NULL) {
            job_destroy(job);
            return err_set(e, ERR_NOMEM, "no memory for a job");
        }
    }
    int rc = request_encode(&job->req, &schema_msg_submit, msg, e);
    msg->label = (struct bytes){0};
    if (rc != 0) {
        job_destroy(job);
        return rc;
    }
    job->req.answered = job_answered;
    job->quiet = quiet;
    job->held = (o->flags & GPUD_SUBMIT_HELD) != 0;
    err_init(&job->error);
    job->done = o->done;
    job->user = o->user;
    *ret_job = job;
    return 0;
}

int job_start(struct gpud_client *c, struct msg_submit *msg, const struct sink *sinks,
              size_t sink_count, const struct host_uses *uses, const gpud_submit_options *options,
              struct gpud_job **ret_job, struct err *e)
{
    gpud_submit_options o = {0};
    struct gpud_job *job = NULL;
    int rc = submit_options_read(options, &o, e);
    if (rc == 0) {
        /* one answer instead of two; in a ring an unanswered request delays no other request */
        bool quiet = (o.flags & GPUD_SUBMIT_HELD) != 0 || lane_is_up(c);
        rc = job_make(msg, sinks, sink_count, uses, &o, quiet, &job, e);
    }
    if (rc == 0 && job->req.msg.size > c->session.max_message) {
        rc = err_set(e, ERR_LIMIT, "job of %zu bytes, the daemon takes %llu: use buffers",
                     job->req.msg.size, (unsigned long long)c->session.max_message);
    }
    if (rc == 0) {
        rc = submit(c, job, e);
    }
    if (rc != 0) {
        if (job != NULL) {
            job_destroy(job);
        }
        if (uses != NULL) {
            arena_uses_end(c, uses->use, uses->count, false, false);
        }
        return rc;
    }
    jobs_link(c, job);
    early_lend(c, job);
    *ret_job = job;
    return 0;
}

/* ---- the user's side ----------------------------------------------------------------------- */

void job_release(struct gpud_client *c, struct gpud_job *job)
{
    if (job->state != JOB_ENDED) {
        job_step(job, JOB_RELEASED);
        return;
    }
    queue_remove(job);
    jobs_unlink(c, job);
    job_destroy(job);
    client_arm(c);
}

void job_abandon(struct gpud_job *job)
{
    job_destroy(job);
}

void jobs_forget_ids(struct gpud_client *c)
{
    requests_forget_accepted(&c->requests);
    for (struct gpud_job *job = c->jobs; job != NULL; job = job->next) {
        if (job->state != JOB_ENDED) {
            bucket_remove(c, job);
            job->id = 0;
        }
    }
    for (struct early *early = c->early; early != NULL; early = early->next) {
        message_unref(early->m);
        early->m = NULL;
    }
}

/* Of a job that was sent. */
static bool may_have_run(const struct gpud_job *job, const struct meeting *m)
{
    bool recorded = job->lineage == m->lineage || job->lineage == 0 || m->lineage == 0;
    return m->forgotten || !recorded;
}

/* false: the job is sent again. */
static bool end_unsent(struct gpud_client *c, struct gpud_job *job, const struct meeting *m)
{
    struct request *filler = NULL; /* HELLO reported the number as unanswered */
    struct err e = ERR_INIT;
    if (!arena_uses_change(job->uses, job->use_count) || !may_have_run(job, m) ||
        filler_make(c, job->req.seq, &job->req, &filler, NULL) != 0) {
        return false;
    }
    (void)err_set(&e, ERR_CLOSED,
                  "%s: it may have run, and adds to memory in place, so it is not sent again",
                  m->forgotten ? "its session ended while the daemon was away"
                               : "the daemon and its launcher ended");
    job->req.answered(c, &job->req, NULL, &e);
    return true;
}

void jobs_meet(struct gpud_client *c, const struct meeting *m)
{
    struct gpud_job *next;
    for (struct gpud_job *job = c->jobs; job != NULL; job = next) {
        next = job->next; /* a job that was given up is freed at its end */
        bool sent = job->state != JOB_ENDED && job->req.sent;
        if (sent && !m->other) {
            continue;
        }
        job->doubtful = job->doubtful || (sent && m->anew);
        if (!sent || !end_unsent(c, job, m)) {
            job->lineage = m->lineage;
        }
    }
}

void jobs_finish(struct gpud_client *c)
{
    struct gpud_job *next;
    for (struct gpud_job *job = c->jobs; job != NULL; job = next) {
        next = job->next;
        job->client = NULL;
        job->queue = NULL;
        if (job->state == JOB_RELEASED) { /* in a forked child */
            job_destroy(job);
        }
    }
    c->jobs = NULL;
}

bool job_callback_run(struct gpud_client *c)
{
    struct gpud_job *job = c->ended.first;
    if (job == NULL) {
        return false;
    }
    queue_remove(job);
    client_arm(c);
    gpud_done_cb done = job->done;
    void *user = job->user;
    int code = error_report(job->error.code, &job->error);
    (void)pthread_mutex_unlock(&c->lock);
    done(job, code, user); /* may free the job */
    (void)pthread_mutex_lock(&c->lock);
    return true;
}
