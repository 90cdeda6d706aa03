/* The two readings of a recording that is replayed, and its jobs. */
#include "gpuctl/run/replay.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "gpuctl/ctl/interrupt.h"

/* ---- jobs ------------------------------------------------------------------------------------ */

static void job_free(struct replay_job *j)
{
    replay_give_back(j->client, j->d);
    json_decref(j->root);
    free(j);
}

static void on_done(gpud_job *job, int code, void *user)
{
    struct replay_job *j = user;
    j->client->flying--;
    replay_compare(j, job, code);
    gpud_job_free(job);
    job_free(j);
}

static int job_options(const struct replay *r, const json_t *root, gpud_submit_options *ret_o,
                       struct ctl_err *e)
{
    const json_t *job = json_object_get(root, "job");
    const json_t *device = json_object_get(job, "wants_device");
    gpud_submit_options o = {.size = sizeof o, .flags = GPUD_SUBMIT_BLOCK, .done = on_done};
    const char *class = "";
    json_int_t priority = json_integer_value(json_object_get(job, "priority"));
    uint64_t wish = 0;
    int rc = dumped_text(job, "class", 64, &class, e);
    rc = rc == 0 ? dumped_text(job, "label", GPUD_NAME - 1, &o.label, e) : rc;
    rc = rc == 0 ? dumped_number(job, "deadline_ns", INT64_MAX, &o.deadline_ns, e) : rc;
    rc = rc == 0 ? dumped_number(job, "time_limit_ns", INT64_MAX, &o.time_limit_ns, e) : rc;
    rc = rc == 0 ? dumped_number(job, "wants_device", UINT32_MAX, &wish, e) : rc;
    if (rc == 0 && (priority < -1000 || priority > 1000)) {
        rc = ctl_err_set(e, GPUD_ERR_INVALID, "priority %lld", (long long)priority);
    }
    o.priority = (int32_t)priority;
    o.job_class = run_class(class);
    o.device = r->options.device != 0 ? r->options.device
               : device != NULL       ? GPUD_ON(wish % r->devices)
                                      : 0;
    *ret_o = o;
    return rc;
}

static int submit(struct replay *r, struct replay_job *j, struct ctl_err *e)
{
    gpud_submit_options o;
    gpud_job *job = NULL;
    const struct dumped *d = j->d;
    const gpud_program *program = j->program != NULL ? j->program->built->program : d->program;
    int rc = job_options(r, j->root, &o, e);
    if (rc != 0) {
        return rc;
    }
    o.user = j;
    j->client->flying++;
    rc = gpud_submit(j->client->client, program, d->value, d->param_count, &o, &job);
    if (rc != 0) {
        j->client->flying--;
        return ctl_err_lib(e, rc, "submit");
    }
    return 0;
}

/* A job that never began took no time of a device, and cannot be cancelled at the same moment. */
static bool is_left_out(const struct replay_end *end)
{
    return end != NULL && strcmp(end->state, "cancelled") == 0 && !end->began;
}

static int run_job(struct replay *r, json_t *root, struct ctl_err *e)
{
    const json_t *job = json_object_get(root, "job");
    uint64_t session = 0;
    uint64_t id = 0;
    bool fits = false;
    int rc = dumped_number(job, "session", UINT64_MAX, &session, e);
    rc = rc == 0 ? dumped_number(job, "id", UINT64_MAX, &id, e) : rc;
    struct replay_session *s = rc == 0 ? replay_session(r, session) : NULL;
    struct replay_job *j = s != NULL ? calloc(1, sizeof *j) : NULL;
    if (j == NULL) {
        return rc != 0 ? rc : ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    *j = (struct replay_job){.replay = r,
                             .client = replay_root(s)->client,
                             .root = json_incref(root),
                             .id = id,
                             .line = r->recording.line};
    struct replay_end *end = NULL;
    HASH_FIND(hh, r->ends, &id, sizeof id, end);
    j->end = end;
    if (is_left_out(end)) {
        r->count.left_out++;
        job_free(j);
        return 0;
    }
    rc = replay_wait_for(r, 0, &j->client->flying, j->client->most, e);
    rc = rc == 0 ? replay_bind(r, j, &fits, e) : rc;
    if (rc == 0 && fits) {
        replay_follow(r, j, end != NULL && strcmp(end->state, "done") == 0);
        rc = submit(r, j, e);
    }
    if (rc != 0 || !fits) {
        r->count.left_out += rc == 0;
        job_free(j);
        return rc;
    }
    r->count.jobs++;
    return 0;
}

/* ---- the readings ---------------------------------------------------------------------------- */

static bool enough(const struct replay *r)
{
    uint64_t done = r->count.jobs + r->count.left_out;
    return r->options.jobs > 0 && done >= r->options.jobs;
}

static int learn(struct replay *r, struct ctl_err *e)
{
    enum recording_line line = LINE_OTHER;
    int rc = 0;
    while (rc == 0 && line != LINE_NONE) {
        json_t *root = NULL;
        rc = recording_next(&r->recording, &line, &root, e);
        if (rc == 0 && root != NULL) {
            rc = replay_learn(r, line, root, e);
            rc = rc == 0 ? 0 : recording_wrap(&r->recording, e);
        }
        json_decref(root);
        rc = rc == 0 && interrupt_seen() ? replay_interrupted(e) : rc;
    }
    return rc;
}

/* When the line is due. Time begins with the first job. */
static uint64_t due_ns(struct replay *r, const json_t *root)
{
    struct ctl_err ignored;
    uint64_t at = 0;
    (void)dumped_number(root, "at_ns", UINT64_MAX, &at, &ignored);
    if (r->begin_ns == 0) {
        r->begin_ns = clock_now_ns();
        r->first_ns = at;
    }
    uint64_t since = at > r->first_ns ? at - r->first_ns : 0;
    r->last_ns = at;
    double scaled = r->options.speed > 0 ? (double)since / r->options.speed : 0;
    return r->begin_ns + (scaled < 1e18 ? (uint64_t)scaled : UINT64_C(1000000000000000000));
}

static int run_line(struct replay *r, enum recording_line line, json_t *root, struct ctl_err *e)
{
    if (line == LINE_BUFFER) {
        return replay_make(r, root, e);
    }
    if (line == LINE_FREE) {
        return replay_drop(r, root, e);
    }
    if (line != LINE_JOB) {
        return 0;
    }
    uint64_t due = due_ns(r, root);
    int rc = replay_wait_for(r, due, NULL, 0, e);
    uint64_t now = clock_now_ns();
    if (r->options.speed > 0 && now > due && now - due > r->count.late_ns) {
        r->count.late_ns = now - due;
    }
    return rc == 0 ? run_job(r, root, e) : rc;
}

static int play(struct replay *r, struct ctl_err *e)
{
    enum recording_line line = LINE_OTHER;
    int rc = 0;
    while (rc == 0 && line != LINE_NONE && !enough(r)) {
        json_t *root = NULL;
        rc = recording_next(&r->recording, &line, &root, e);
        if (rc == 0 && root != NULL) {
            rc = run_line(r, line, root, e);
            rc = rc == 0 || rc == CTL_INTERRUPTED ? rc : recording_wrap(&r->recording, e);
        }
        json_decref(root);
    }
    for (uint32_t i = 0; rc == 0 && i < r->clients; i++) {
        rc = replay_wait_for(r, 0, &r->client[i].flying, 0, e);
    }
    r->end_ns = clock_now_ns();
    return rc;
}

int replay_run(struct replay *r, struct ctl_err *e)
{
    int rc = recording_open(r->options.file, &r->recording, e);
    rc = rc == 0 ? learn(r, e) : rc;
    rc = rc == 0 ? replay_open(r, e) : rc;
    rc = rc == 0 ? recording_rewind(&r->recording, e) : rc;
    return rc == 0 ? play(r, e) : rc;
}
