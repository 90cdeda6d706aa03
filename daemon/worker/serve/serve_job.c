/* Frames about jobs, and reports about them. */
#include <inttypes.h>

#include "common/clock.h"
#include "daemon/worker/run/graph.h"
#include "daemon/worker/serve/serve_int.h"

void server_job_done(void *data, struct job *j)
{
    struct server *s = data;
    struct err e;
    err_init(&e);
    memory_stamp(&s->device.memory, clock_now_ns());
    server_must_send(s, channel_send_bytes(&s->channel, bytes_of(j->done, j->done_size), NULL, &e),
                     &e);
    if (device_is_lost(j->e.code)) {
        server_end_lost(s, j->e.text);
    }
}

void server_job_turned(void *data, struct job *j)
{
    struct server *s = data;
    struct err e = ERR_INIT;
    int rc = j->watch.reported_running ? answer_started(&s->channel, j, &e)
                                       : answer_paused(&s->channel, j, &e);
    server_must_send(s, rc, &e);
}

void server_job_start(void *data, struct job *j, const struct msg_f_job *msg, struct bytes frame)
{
    struct server *s = data;
    struct err e;
    err_init(&e);
    if (j->deadline_ns != NS_NEVER && job_expired(j, clock_now_ns(), "its start", &e)) {
        server_job_fail(s, j, &e);
        return;
    }
    completion_add(&s->completion, j);
    if (msg->steps.count == 0 && completion_at_once(&s->completion, j)) {
        return;
    }
    if (executor_enqueue(&s->executor, j, msg, frame, &e) != 0) {
        j->e = e;
        completion_fail(&s->completion, j); /* the device is lost: does not return */
    } else if (j->state == JOB_STARTED) {   /* there is no memory for its graph */
        const struct err why = j->e;
        completion_give_up(&s->completion, j, &why);
        (void)completion_at_once(&s->completion, j);
    }
}

void server_job_late(void *data, struct job *j)
{
    struct server *s = data;
    struct err e = ERR_INIT;
    server_must_send(s, answer_late(&s->channel, j, &e), &e);
}

void server_job_fail(void *data, struct job *j, const struct err *why)
{
    struct server *s = data;
    completion_add(&s->completion, j);
    if (device_is_lost(why->code)) {
        j->e = *why;
        completion_fail(&s->completion, j); /* does not return */
        return;
    }
    /* It finishes after its predecessors, because jobs that come after it wait for it alone. Its
     * client hears of the deadline at once, of what the front may mend then. */
    if (why->code == ERR_DEADLINE) {
        (void)completion_cancel(&s->completion, j, why);
    } else {
        completion_give_up(&s->completion, j, why);
        (void)completion_at_once(&s->completion, j);
    }
}

void server_job_announce(void *data, const struct job *j, bool waits)
{
    struct server *s = data;
    struct err e = ERR_INIT;
    struct msg_w_waiting msg = {
        .job = j->id, .waits = waits, .bytes = waits ? waiting_wants(&s->waiting, j) : 0};
    server_must_send(s, channel_send(&s->channel, &schema_msg_w_waiting, &msg, NULL, &e), &e);
}

/* For a known job that the front sent again. If its end was reported, the report is sent again;
 * else it will be sent at the end. */
static int job_again(struct server *s, const struct job *j, struct err *e)
{
    return job_state_reported(j->state)
               ? channel_send_bytes(&s->channel, bytes_of(j->done, j->done_size), NULL, e)
               : 0;
}

/* Puts a job into the ledger. A job that cannot be served keeps its place there, because other
 * jobs may come after it. */
static int job_admit(struct server *s, struct bytes frame, const struct msg_f_job *msg,
                     struct job **ret_job, struct err *e)
{
    struct job *j = NULL;
    int rc = ledger_full(&s->ledger)
                 ? err_set(e, ERR_LIMIT, "a worker has at most %u jobs", LEDGER_MAX)
                 : job_create(&s->executor.scope, msg, &j, e);
    if (rc != 0 && (j = job_refused(msg)) == NULL) {
        server_end_lost(s, "no memory for a job");
    }
    int after = ledger_after(&s->ledger, j, rc == 0 ? e : NULL);
    rc = rc == 0 ? after : rc;
    if (!ledger_add(&s->ledger, j)) {
        server_end_lost(s, "no memory for a job");
    }
    batch_join(&s->executor.batch, j);
    if (msg->deadline_ns != NS_NEVER &&
        coalesce_rule_hurries(&s->coalesce.rule, msg->deadline_ns, clock_now_ns())) {
        batch_hurry(&s->executor.batch);
    }
    *ret_job = j;
    return rc == 0 ? waiting_offer(&s->waiting, j, frame, msg, e) : rc;
}

int serve_job(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_job msg;
    struct job *j = NULL;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_job, frame, &msg, e);
    if (rc != 0) {
        return rc;
    }
    const struct job *known = ledger_find(&s->ledger, msg.job);
    if (known != NULL) {
        return job_again(s, known, e);
    }
    if (job_admit(s, frame, &msg, &j, e) != 0) {
        server_job_fail(s, j, e);
    }
    return 0;
}

int serve_retire(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_retire msg;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_retire, frame, &msg, e);
    struct job *j = rc == 0 ? ledger_find(&s->ledger, msg.job) : NULL;
    if (j != NULL && j->state == JOB_REPORTED) {
        job_set_state(j, JOB_RETIRED);
    } else if (j != NULL && j->state == JOB_FINISHED) {
        ledger_retire(&s->ledger, j);
    }
    return rc;
}

/* Commands of a job that the device has run to their end: a stream takes nothing back. */
int serve_cancel(struct server *s, struct bytes frame, struct frame_fds *fds, struct err *e)
{
    struct msg_f_cancel msg;
    struct err why = ERR_INIT;
    (void)fds;
    int rc = proto_decode(&schema_msg_f_cancel, frame, &msg, e);
    struct job *j = rc == 0 ? ledger_find(&s->ledger, msg.job) : NULL;
    if (j == NULL || (j->state != JOB_WAITING && j->state != JOB_GRAPH)) {
        return rc;
    }
    if (j->state == JOB_WAITING) {
        waiting_remove(&s->waiting, j);
        completion_add(&s->completion, j);
    }
    bool begun = j->state == JOB_GRAPH && !graph_untouched(j->graph);
    (void)err_set(&why, ERR_CANCELLED, "cancelled %s",
                  begun ? "while it ran: the steps that had not begun did not" : "before it began");
    if (begun) {
        graph_stop(j->graph, &s->executor, j, &why);
    } else {
        (void)completion_cancel(&s->completion, j, &why);
    }
    (void)server_ask_device(s); /* other jobs may have waited for its memory */
    return 0;
}
