/* What must hold. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/descriptors.h"
#include "common/range.h"
#include "daemon/front/model/op.h"
#include "daemon/front/model/tenant.h"
#include "daemon/front/sched/shares.h"
#include "daemon/front/workers/record.h"
#include "tests/sim/front/rules/sim_access.h"
#include "tests/sim/front/rules/sim_conduct.h"
#include "tests/sim/front/rules/sim_endings.h"
#include "tests/sim/front/rules/sim_fronts.h"
#include "tests/sim/front/rules/sim_moves.h"
#include "tests/sim/front/rules/sim_places.h"
#include "tests/sim/front/rules/sim_said.h"
#include "tests/sim/front/rules/sim_shares.h"
#include "tests/sim/front/rules/sim_told.h"
#include "tests/sim/front/rules/sim_views.h"
#include "tests/sim/front/rules/sim_waits.h"
#include "tests/sim/front/sim.h"

#define SILENCE_NS   (3 * NS_PER_S)
#define STUCK_NS     (7 * NS_PER_S)
#define LATE_NS      NS_PER_S
#define TURN_MOST    TURN_UNITS
#define MESSAGE_MOST 2048u  /* bytes of a request or an answer, mostly */
#define KEPT_SLACK   16384u /* the answer that exceeds the limit is kept, and those under way, */
#define KEPT_TEXT    256u   /* which may be errors with a text each */

/* ---- answers --------------------------------------------------------------------------------- */

static void blame(struct sim *s, const struct sim_job *j, const char *why)
{
    sim_fail(s, "result: job %" PRIu64 " of client %u, request %" PRIu64 ", ends with %s: %s",
             j->id, j->client->index, j->request->seq, err_name(j->code), why);
}

/* Mishaps after which a front may not know better. */
static bool excused(const struct sim *s, const struct sim_job *j)
{
    return memory_failed() || j->lied || j->adopted || j->vague || s->era > 1;
}

static const char *not_convicted(const struct sim_job *j)
{
    const char *why = j->solo ? NULL : "it never had a device for itself";
    return j->guilty ? why : j->internal >= 2 ? NULL : "it did nothing wrong";
}

static const char *not_long(const struct sim_job *j)
{
    bool lasts = j->guilty || j->stalled || j->overslept || j->run_ns >= GUILT_LONG_NS;
    bool limited = !j->overran && j->limit_ns != 0;
    bool once = j->blocked && j->writes; /* it cannot run again, to find the culprit */
    return lasts || limited || once ? NULL : "it was brief";
}

/* Why the code cannot be; NULL: it can. */
static const char *innocent(const struct sim *s, const struct sim_job *j)
{
    switch (j->code) {
    case ERR_KERNEL_FAULT:
        return not_convicted(j);
    case ERR_QUARANTINED:
        return j->loaded || strikes_may_pause(s, j->client->tenant)
                   ? NULL
                   : "neither it nor its tenant has cost others anything";
    case ERR_TIME_LIMIT:
        return not_long(j);
    case ERR_DEADLINE:
        return j->deadline_ns != 0 ? NULL : "it has none";
    case ERR_CANCELLED:
        return j->cancelled || s->killed_session ? NULL : "no request cancelled it";
    default:
        return NULL;
    }
}

static const char *not_lost(const struct sim *s, const struct sim_job *j)
{
    if (j->code != ERR_WORKER_LOST || s->gave_up) {
        return NULL;
    }
    if (j->external + j->internal == 0) {
        return "no worker ended with it";
    }
    bool again = !j->writes && j->internal < 2 && j->external <= 64 && !j->guilty;
    bool convicted = !j->writes && j->guilty && j->solo && j->internal >= 2 && j->external == 0;
    return again       ? "it wrote nothing outside itself, and could run again"
           : convicted ? "it ended its worker when it ran alone"
                       : NULL;
}

static void check_code(struct sim *s, const struct sim_job *j)
{
    const char *why = innocent(s, j);
    why = why == NULL ? not_lost(s, j) : why;
    why = j->ended_for && j->code == ERR_WORKER_LOST ? "its client had its worker ended" : why;
    if (why != NULL) {
        blame(s, j, why);
    }
}

/* ---- results --------------------------------------------------------------------------------- */

/* As long as a worker lives on, a later front gives no id of an earlier one to another job. */
void rules_job_id(struct sim *s, const struct sim_job *j, uint64_t id)
{
    bool remembered = false;
    for (unsigned i = 0; i < s->workers; i++) {
        const struct sim_worker *x = s->worker[i];
        remembered =
            remembered || (x->state == WORKER_RUNS && x->began_ns + NS_PER_S < s->closed_ns);
    }
    for (unsigned i = 0; i < s->jobs && remembered && s->era > 1 && !memory_failed(); i++) {
        const struct sim_job *k = s->job[i];
        if (k != j && k->id == id && k->id_era + 1 == s->era) {
            sim_fail(s, "id: job %" PRIu64 " of client %u has the id of a job of client %u", id,
                     j->client->index, k->client->index);
        }
    }
}

static void check_good(struct sim *s, const struct sim_job *j)
{
    rights_result(s, j);
    if (j->begun == 0) {
        blame(s, j, "no worker ran it");
    }
    if (j->guilty) {
        blame(s, j, "its kernel never ends well");
    }
    if (j->wrong) {
        blame(s, j, "its arguments are wrong");
    }
}

void rules_result(struct sim *s, struct sim_job *j)
{
    strikes_count(s, j);
    if (j->code != 0 && strcmp(err_name(j->code), "UNKNOWN") == 0) {
        blame(s, j, "no such error exists");
    }
    if (excused(s, j)) {
        return;
    }
    check_code(s, j);
    if (!s->gave_up && j->replays > j->external + j->internal) {
        blame(s, j, "it is said to have run again more often than workers ended with it");
    }
    if (j->code == 0) {
        check_good(s, j);
    }
    if (j->code != 0 && j->effects == 0 && j->writes && j->begun > 0 &&
        j->external + j->internal > 0) {
        blame(s, j, "it may have written");
    }
}

/* A job of the worker that may cost it its life: one that does not end, exceeds a limit of its
 * client with a kernel of its own, or is to be killed. */
static bool has_cause(const struct sim_worker *x)
{
    for (const struct sim_worker_job *j = x->job; j != NULL; j = j->next) {
        const struct sim_job *k = j->job;
        bool own = k != NULL &&
                   (k->guilty || k->run_ns >= GUILT_LONG_NS ||
                    (k->killed && x->number >= DEVICES_MAX) || (k->loaded && k->limit_ns != 0));
        if (j->state != WJOB_ENDED && own) {
            return true;
        }
    }
    return false;
}

void rules_killed(struct sim *s, const struct sim_worker *x)
{
    bool rests = !memory_failed() && !x->lied && (domain_rests(s, x) || domain_is_unwanted(s, x));
    bool excuse = memory_failed() || x->silent || x->cut || x->lied || !x->ready || s->era > 1 ||
                  x->missed_era != 0 || x->lease.mute;
    if (!excuse && !rests && !has_cause(x) && s->now_ns > s->stalled_ns + 10 * NS_PER_S) {
        sim_fail(s, "killed: the front ends worker %" PRIu64 ", which did nothing wrong", x->id);
    }
}

/* No notice says that it is lost when its worker ends. */
static bool outlives_worker(const struct sim_buffer *b)
{
    bool gone = b->known_lost || b->lied || (b->freed && !b->published);
    return gone || b->sealed || b->sealing || b->worker == 0 || b->moved_era != 0 || b->copied;
}

/* When all is quiet each client knows which of its buffers are lost. */
void rules_notices(struct sim *s)
{
    for (unsigned i = 0; i < s->clients && s->era == 1 && !memory_failed(); i++) {
        const struct sim_client *c = &s->client[i];
        for (unsigned k = 0; c->state == CLIENT_ON && !c->starved && k < c->buffers; k++) {
            const struct sim_buffer *b = c->buffer[k];
            if (!outlives_worker(b) && worker_ended_ns(s, b->worker) + 2 * NS_PER_S < s->now_ns) {
                sim_fail(s, "notice: buffer %#" PRIx64 " of client %u is lost, and no notice came",
                         b->handle, i);
            }
        }
    }
}

static void check_create(struct sim *s, const struct sim_request *q, const struct msg_error *m)
{
    struct msg_buffer_create c;
    struct err e = ERR_INIT;
    if (m->code != ERR_NO_DEVICE ||
        proto_decode(&schema_msg_buffer_create, bytes_of(q->data, q->size), &c, &e) != 0) {
        return;
    }
    for (unsigned i = 0; i < s->f->device_count && s->p.special != WORLD_DOMAINS; i++) {
        const struct device *d = s->f->device[i];
        bool comes = device_hopeful(d) && d->recovery == 0 && d->state != DEVICE_ADOPTING;
        if (comes && (c.device == 0 || c.device == i + 1)) {
            sim_fail(
                s, "create: request %" PRIu64 " of client %u is refused, and device %u is to come",
                q->seq, q->client->index, i);
        }
    }
}

/* A buffer is lost from the time at which the front learns that its worker has ended. */
static void check_info(struct sim *s, const struct sim_request *q, struct bytes message)
{
    struct msg_buffer m;
    const struct sim_buffer *b = q->buffer;
    if (q->kind != MSG_KIND_BUFFER_INFO || b == NULL || b->lied || memory_failed() ||
        b->moved_era != 0 || b->copied ||
        proto_decode(&schema_msg_buffer, message, &m, NULL) != 0 || m.state == 3 || m.state == 4 ||
        launcher_has_copy(s, b->handle)) {
        return; /* a sealed buffer is restored, and so is one that has gone to the host */
    }
    for (unsigned i = s->workers; i > 0; i--) {
        const struct sim_worker *x = s->worker[i - 1];
        if (x->id == b->worker && x->told_era == s->era) {
            sim_fail(s,
                     "info: buffer %#" PRIx64 " of client %u is said to be whole, and its worker "
                     "%" PRIu64 " has ended",
                     b->handle, q->client->index, x->id);
        }
    }
}

/* The first answer to a request that the front takes now. */
static void check_refusal(struct sim *s, const struct sim_request *q, const struct msg_error *m)
{
    places_refused(s, m);
    if (q->kind == MSG_KIND_BUFFER_CREATE) {
        check_create(s, q, m);
    }
    if (q->kind == MSG_KIND_SUBMIT && m->code == ERR_BUSY) {
        turns_crowd(s, q->client, m->retry_after_ns);
    }
}

void rules_answer(struct sim *s, const struct sim_parcel *p, struct bytes message)
{
    const struct sim_request *q = p->request;
    struct msg_error m;
    bool fresh = p == s->asked && q->sendings == 1;
    due_answer(s, p, message);
    rights_answer(s, p, message);
    turns_answer(s, p, message);
    if (fresh) {
        check_info(s, q, message);
    }
    if (proto_kind(message) != MSG_KIND_ERROR ||
        proto_decode(&schema_msg_error, message, &m, NULL) != 0) {
        return;
    }
    if (fresh) {
        check_refusal(s, q, &m);
    }
    if (m.code == ERR_BUSY && q->kind == MSG_KIND_SUBMIT && m.retry_after_ns == 0) {
        sim_fail(s, "retry: request %" PRIu64 " of client %u is refused without a time: %.*s",
                 q->seq, q->client->index, (int)m.text.size, (const char *)m.text.data);
    }
}

static bool worker_gone(struct sim *s, uint64_t id)
{
    for (unsigned i = 0; i < s->workers; i++) {
        const struct sim_worker *x = s->worker[i];
        if (x->id == id && x->state == WORKER_RUNS && !x->killed) {
            return false;
        }
    }
    return true;
}

/* The host has its content, and the launcher keeps it for the next front. */
static bool lives_in_host(const struct sim *s, const struct sim_buffer *b)
{
    bool session_ended = b->known_lost; /* its buffers went with it */
    return b->moved_era != 0 && !session_ended && (b->alone_era == 0 || b->alone_era == s->era);
}

void rules_lost(struct sim *s, const struct sim_buffer *b)
{
    bool excuse = memory_failed() || b->lied || s->gave_up || s->broke_restore || b->vague;
    if (excuse || b->handle == 0) {
        return;
    }
    if (b->era == s->era && !worker_gone(s, b->worker)) {
        sim_fail(s,
                 "lost: buffer %#" PRIx64 " is said to be lost, and its worker %" PRIu64 " lives",
                 b->handle, b->worker);
    }
    if (b->sealed && b->sealed_era == s->era && b->era == s->era) {
        sim_fail(s, "lost: the sealed buffer %#" PRIx64 " is lost", b->handle);
    }
    if (lives_in_host(s, b)) {
        sim_fail(s, "lost: buffer %#" PRIx64 " is lost, and went to the host before", b->handle);
    }
}

/* Whether the buffer's worker, which the former front had, lives on, or the launcher has it. */
static bool lives_on(struct sim *s, const struct sim_buffer *b)
{
    if (launcher_has_copy(s, b->handle)) {
        return true;
    }
    for (unsigned i = 0; i < s->workers; i++) {
        const struct sim_worker *x = s->worker[i];
        bool lives = x->state == WORKER_RUNS && !x->killed && !x->silent;
        if (lives && x->id == b->worker && x->began_ns < s->closed_ns && b->era + 1 == s->era) {
            return true;
        }
    }
    return false;
}

/* A session with a buffer in a worker that lives on is known to the next front. */
void rules_resumed(struct sim *s, const struct sim_client *c, bool known)
{
    bool in_time = c->left_ns == s->closed_ns &&
                   stall_passed_ns(s, s->accepts_ns) < s->p.linger_ms * NS_PER_MS;
    if (known || !in_time || c->said_bye || memory_failed() || s->killed_session || s->gave_up) {
        return;
    }
    for (unsigned i = 0; i < c->buffers; i++) {
        const struct sim_buffer *b = c->buffer[i];
        bool owned = b->maker == c && !b->freed && !b->known_lost && !b->lied && b->worker != 0;
        if (owned && lives_on(s, b)) {
            sim_fail(s,
                     "session: another front runs, and does not know client %u with buffer "
                     "%#" PRIx64,
                     c->index, b->handle);
        }
    }
}

void buffer_find_worker(struct sim *s, struct sim_buffer *b)
{
    for (unsigned i = s->workers; i > 0; i--) {
        struct sim_worker *x = s->worker[i - 1];
        if (x->state == WORKER_RUNS && worker_buffer(x, b->handle) != NULL) {
            b->worker = x->id;
            return;
        }
    }
}

/* ---- at every time --------------------------------------------------------------------------- */

static bool is_pressed(struct sim *s, const struct device *d)
{
    return s->device[worker_slot_of(s, d)].pressed_until_ns + 10 * NS_PER_MS > s->now_ns;
}

/* The front looks at a full channel again when its timer fires, and that comes late after it stood
 * still. */
static bool looks_soon(const struct sim *s)
{
    return s->f->pressed && front_due_ns(s) <= s->now_ns;
}

/* A device that has nothing to do leaves no job waiting that is ready. */
static void check_idle(struct sim *s)
{
    struct front *f = s->f;
    struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        unsigned i = d->index;
        bool idle = device_takes(d) && d->inflight_count == 0 && d->link != NULL;
        if (!idle || is_pressed(s, d) || looks_soon(s) || memory_failed()) {
            continue;
        }
        const struct job *j = domain_head(f, d);
        if (j != NULL && d->exclusive) {
            sim_fail(s, "idle: device %u is reserved for nothing, and job %" PRIu64 " is ready", i,
                     j->id);
        }
        if (j != NULL) {
            sim_fail(
                s,
                "idle: device %u has nothing to do, and job %" PRIu64 " is ready (%s, device %d)",
                i, j->id, job_wait_name(j->wait), j->device != NULL ? (int)j->device->index : -1);
        }
    }
}

/* A worker that gives no sign of life is ended in time. */
static void check_silence(struct sim *s, const struct device *d, const struct sim_worker *x,
                          uint64_t since)
{
    uint64_t patience = s->p.beat_ms * 2 * NS_PER_MS + (x->ready ? 0 : 60 * NS_PER_S);
    patience = patience > SILENCE_NS ? patience : SILENCE_NS;
    patience = x->starved ? patience + 60 * NS_PER_S
               : x->spins ? 2 * patience + NS_PER_S /* its time counts from the first look on */
                          : patience;
    if (x->silent && !x->killed && s->now_ns > since + patience + LATE_NS &&
        d->patience_ns < 60 * NS_PER_S) {
        sim_fail(s,
                 "silence: worker %" PRIu64 " is silent for %" PRIu64
                 " ms, and not ended; its device is %s, the front's patience %" PRIu64 " ms",
                 x->id, (s->now_ns - x->heard_ns) / NS_PER_MS, device_state_name(d),
                 d->patience_ns / NS_PER_MS);
    }
}

/* A device whose worker cannot be ended is given up in time. A front that takes over one which an
 * earlier front killed has to see that it is silent. */
static void check_stuck(struct sim *s, const struct device *d, const struct sim_worker *x,
                        uint64_t since)
{
    bool given_up = d->state == DEVICE_STUCK || d->state == DEVICE_ABSENT;
    since = since > x->killed_ns ? since : x->killed_ns;
    since += x->killed_ns < s->opened_ns ? SILENCE_NS : 0;
    if (x->killed && !given_up && s->now_ns > since + STUCK_NS) {
        sim_fail(s, "stuck: worker %" PRIu64 " does not end, and its device is %s", x->id,
                 device_state_name(d));
    }
}

/* A worker that sent a frame which proves that it errs is ended. */
static void check_exposed(struct sim *s, const struct sim_worker *x)
{
    if (x->exposed_ns != 0 && x->exposed_era == s->era && !x->killed && !x->silent && !x->cut &&
        !memory_failed() && s->now_ns > x->exposed_ns + LATE_NS &&
        s->now_ns > s->stalled_ns + LATE_NS) {
        sim_fail(s, "exposed: worker %" PRIu64 " sent a wrong frame, and goes on", x->id);
    }
}

/* A worker that goes on runs no job that its front does not know: it would be beside others of the
 * same buffers. */
static void check_known(struct sim *s, const struct device *d, const struct sim_worker *x)
{
    bool goes_on = device_takes(d) && s->accepts && !x->killed && !x->silent && !x->cut && !x->lied;
    for (const struct sim_worker_job *j = x->job; j != NULL && goes_on; j = j->next) {
        if (j->state == WJOB_RUNS && job_find(s->f->jobs, j->id) == NULL) {
            sim_fail(
                s, "known: worker %" PRIu64 " runs job %" PRIu64 ", which the front does not know",
                x->id, j->id);
        }
    }
}

/* A device that is absent is looked for again, when its pause is over. */
static void check_absent(struct sim *s, const struct device *d)
{
    uint64_t since = d->restart_ns > s->stalled_ns ? d->restart_ns : s->stalled_ns;
    since = since > s->opened_ns ? since : s->opened_ns;
    if (d->state == DEVICE_ABSENT && d->worker == 0 && !d->overpromised && !d->losing &&
        !front_life_stops(s->f->life) && !memory_failed() && s->now_ns > since &&
        s->now_ns - since > LATE_NS) {
        sim_fail(s, "absent: nothing looks for device %u again", d->index);
    }
}

static void check_workers(struct sim *s)
{
    const struct device *d;
    for (unsigned at = 0; (d = front_next_device(s->f, &at)) != NULL;) {
        unsigned slot = worker_slot_of(s, d);
        if (device_serves(d) && d->link == NULL) {
            sim_fail(s, "serves: device %u has no worker, and counts as ready", d->index);
        }
        if (d->state == DEVICE_ABSENT && s->device[slot].later && s->era == 1) {
            sim_fail(s, "absent: device %u exists, and is given up", d->index);
        }
        check_absent(s, d);
        struct sim_worker *x = d->worker != 0 ? worker_of_device(s, slot) : NULL;
        if (x == NULL || x->state != WORKER_RUNS || d->link == NULL) {
            continue;
        }
        uint64_t since = x->heard_ns > s->stalled_ns ? x->heard_ns : s->stalled_ns;
        since = since > s->opened_ns ? since : s->opened_ns;
        check_silence(s, d, x, since);
        check_stuck(s, d, x, since);
        check_exposed(s, x);
        check_known(s, d, x);
        endings_check(s, x);
    }
}

static void check_limits(struct sim *s)
{
    const struct front *f = s->f;
    uint64_t most = s->queue_most + f->device_count + (s->era > 1 ? s->queue_most : 0);
    if (f->job_count > most) {
        sim_fail(s, "limit: %u jobs are unfinished, at most %" PRIu64, f->job_count, most);
    }
    /* a job comes back to the queue past its deadline when its worker ends */
    bool overdue = agenda_next_ns(&f->deadlines) < s->now_ns - LATE_NS;
    s->overdue_ns = !overdue ? 0 : s->overdue_ns == 0 ? s->now_ns : s->overdue_ns;
    if (overdue && s->overdue_ns < s->now_ns - LATE_NS && s->stalled_ns < s->now_ns - LATE_NS) {
        sim_fail(s, "deadline: a queued job is past its deadline for %" PRIu64 " ms",
                 (s->now_ns - agenda_next_ns(&f->deadlines)) / NS_PER_MS);
    }
    if (f->input_bytes > f->config.staging_input_bytes && f->job_count > 1 && s->era == 1) {
        sim_fail(s, "limit: requests take %" PRIu64 " bytes", f->input_bytes);
    }
    if (f->work.most > TURN_MOST) {
        sim_fail(s, "turns: a turn of the loop had %" PRIu64 " units of work", f->work.most);
    }
    bool refuses = front_life_refuses_jobs(f->life);
    if (refuses && s->refused_before && f->count.submitted > s->submitted_before) {
        sim_fail(s, "drain: a job is admitted while the daemon drains");
    }
    s->refused_before = refuses;
    s->submitted_before = f->count.submitted;
}

/* Sealed buffers leave descriptors for connections, and those of workers. */
static void check_files(struct sim *s)
{
    if (s->p.special == WORLD_SEALS && !descriptors_left()) {
        sim_fail(s, "files: reserved descriptors are in use");
    }
}

void rules_step(struct sim *s)
{
    shares_check(s);
    if (s->f == NULL) {
        return;
    }
    check_idle(s);
    check_workers(s);
    for (unsigned i = 0; i < s->f->device_count; i++) {
        domain_check_overrun(s, s->f->device[i]);
    }
    check_limits(s);
    monitor_check(s);
    said_check(s);
    drain_check(s);
    places_check(s);
    waits_check(s);
    moves_check(s);
    check_files(s);
    record_check(s);
    told_look(s);
}

/* ---- accounts -------------------------------------------------------------------------------- */

static void equal(struct sim *s, const char *what, uint64_t counted, uint64_t found)
{
    if (counted != found) {
        sim_fail(s, "accounts: %s: %" PRIu64 " are counted, %" PRIu64 " are there", what, counted,
                 found);
    }
}

static void count_flight(const struct device *d, unsigned charged[CLASS_COUNT],
                         unsigned *ret_streams)
{
    for (const struct job *j = d->inflight; j != NULL; j = j->device_next) {
        charged[j->sched.charge.class] += j->sched.charge.stake != NULL;
    }
    for (unsigned stream = 0; stream < STREAMS_MAX; stream++) {
        *ret_streams += d->stream_load[stream] > 0;
    }
}

/* What the lines of devices count: jobs that are ready, and jobs in flight that were charged. */
static void check_lines(struct sim *s)
{
    const struct front *f = s->f;
    unsigned any = 0;
    unsigned bound[DEVICES_MAX] = {0};
    for (const struct job *j = f->jobs; j != NULL; j = j->hh.next) {
        bool ready = j->sched.ready.in;
        any += ready && j->device == NULL;
        bound[j->device != NULL ? device_shown(j->device) : 0] += ready && j->device != NULL;
    }
    equal(s, "ready jobs for any device", f->any_ready, any);
    for (unsigned i = 0; i < f->device_count; i++) {
        const struct device *d = f->device[i];
        unsigned charged[CLASS_COUNT] = {0};
        unsigned streams = 0;
        count_flight(d, charged, &streams);
        for (const struct device *x = d->domains; x != NULL; x = x->domain_next) {
            count_flight(x, charged, &streams);
        }
        for (unsigned class = 0; class < CLASS_COUNT; class ++) {
            equal(s, "jobs in flight of a class", d->line.flying[class], charged[class]);
        }
        equal(s, "ready jobs of a device", d->line.bound, bound[i]);
        equal(s, "streams with jobs", d->line.streams, streams);
    }
}

static unsigned check_jobs(struct sim *s)
{
    const struct front *f = s->f;
    unsigned unfinished = 0;
    unsigned queued = 0;
    uint64_t bytes = 0;
    for (const struct job *j = f->jobs; j != NULL; j = j->hh.next) {
        if (job_ended(j)) {
            continue;
        }
        unfinished++;
        queued += j->state == JOB_QUEUED;
        bytes += j->charged;
        if (j->state != JOB_QUEUED && j->device == NULL) {
            sim_fail(s, "job: job %" PRIu64 " is %s, and on no device", j->id,
                     job_state_name(j->state));
        }
    }
    for (const struct job *j = f->leaving; j != NULL; j = j->ended_next) {
        unfinished++;
        bytes += j->charged;
    }
    equal(s, "unfinished jobs", f->job_count, unfinished);
    equal(s, "queued jobs", f->queued_count, queued);
    equal(s, "bytes of requests", f->input_bytes, bytes);
    const struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        unsigned flight = 0;
        bool known = d->culprit == NULL;
        for (const struct job *j = d->inflight; j != NULL; j = j->device_next) {
            known = known || d->culprit == j;
            flight++;
        }
        if (!known) {
            sim_fail(s, "job: the culprit of device %u is not on it any more", d->index);
        }
        equal(s, "jobs in flight", d->inflight_count, flight);
        domain_check(s, d);
    }
    domain_check_kept(s);
    check_lines(s);
    lines_check(s);
    return HASH_COUNT(f->jobs);
}

/* The front keeps the tenant of each buffer. */
static void check_owners(struct sim *s)
{
    const struct front *f = s->f;
    uint32_t cursor = 0;
    for (const struct buffer *b; (b = idmap_next(&f->buffers, &cursor, NULL)) != NULL;) {
        const struct tenant *t = f->tenants;
        while (t != NULL && t != b->tenant) {
            t = t->hh.next;
        }
        if (t == NULL) {
            sim_fail(s, "tenant: the tenant of buffer %#" PRIx64 " is forgotten", b->handle);
        }
    }
}

struct sums {
    uint64_t jobs, buffers, bytes, arenas, sessions;
};

static struct sums sum_of(const struct front *f, const struct tenant *t)
{
    struct sums sum = {0};
    uint32_t cursor = 0;
    for (const struct job *j = f->jobs; j != NULL; j = j->hh.next) {
        sum.jobs += j->tenant == t && !job_ended(j);
    }
    for (const struct job *j = f->leaving; j != NULL; j = j->ended_next) {
        sum.jobs += j->tenant == t;
    }
    for (const struct buffer *b; (b = idmap_next(&f->buffers, &cursor, NULL)) != NULL;) {
        sum.buffers += b->tenant == t;
        bool charged = b->tenant == t && !b->freed && b->state != BUFFER_LOST;
        sum.bytes += charged ? buffer_charged(b) : 0;
    }
    for (const struct session *x = f->sessions; x != NULL; x = x->hh.next) {
        sum.arenas += x->tenant == t ? x->arenas : 0;
        sum.sessions += x->tenant == t;
    }
    for (const struct session *x = f->ending; x != NULL; x = x->ending_next) {
        sum.arenas += x->tenant == t ? x->arenas : 0;
        sum.sessions += x->tenant == t;
    }
    return sum;
}

/* Answers of jobs that were admitted before are kept beyond the limit. */
static void check_messages(struct sim *s, const struct tenant *t)
{
    const struct config *c = &s->f->config;
    uint64_t admitted = c->session_inflight_max * (t->sessions + 1) * MESSAGE_MOST;
    if (t->message_bytes > c->tenant_message_bytes + admitted) {
        sim_fail(s, "limit: %" PRIu64 " bytes are kept for a tenant", t->message_bytes);
    }
}

static void check_tenants(struct sim *s)
{
    const struct front *f = s->f;
    for (const struct tenant *t = f->tenants; t != NULL; t = t->hh.next) {
        struct sums sum = sum_of(f, t);
        uint64_t bytes = 0;
        check_messages(s, t);
        rules_gate(s, t);
        equal(s, "jobs of a tenant", t->held[TENANT_JOBS], sum.jobs);
        equal(s, "buffers of a tenant", t->held[TENANT_BUFFERS], sum.buffers);
        equal(s, "arenas of a tenant", t->held[TENANT_ARENAS], sum.arenas);
        equal(s, "sessions of a tenant", t->sessions, sum.sessions);
        equal(s, "bytes of a tenant's buffers", t->buffer_bytes, sum.bytes);
        for (unsigned i = 0; i < PLACES_MAX; i++) {
            bytes += t->device_bytes[i];
        }
        equal(s, "bytes of a tenant's buffers on devices", bytes, sum.bytes);
    }
}

static unsigned check_sessions(struct sim *s)
{
    unsigned count = 0;
    const struct front *f = s->f;
    uint64_t sessions = HASH_COUNT(f->sessions);
    for (const struct session *x = f->ending; x != NULL; x = x->ending_next) {
        sessions++;
    }
    equal(s, "sessions", f->session_count, sessions);
    for (const struct session *x = f->sessions; x != NULL; x = x->hh.next) {
        uint64_t kept = 0;
        uint64_t errors = 0;
        unsigned pending = 0;
        unsigned open = 0;
        for (const struct op *o = x->ops.all; o != NULL; o = o->hh.next) {
            kept += o->reply != NULL ? o->reply_size : 0;
            errors +=
                o->reply != NULL && proto_kind(bytes_of(o->reply, o->reply_size)) == MSG_KIND_ERROR;
            pending += o->state == OP_PENDING;
        }
        for (const struct op *o = x->ops.open; o != NULL; o = o->open_next) {
            open++;
        }
        equal(s, "jobs of a session", x->jobs, HASH_CNT(hh_seq, x->own_jobs));
        equal(s, "answers of a session", x->ops.count, HASH_COUNT(x->ops.all));
        count += 1 + x->ops.count;
        equal(s, "bytes of kept answers", x->ops.kept_bytes, kept);
        equal(s, "requests without an answer", open, pending);
        if (x->ops.kept_bytes > f->config.keep_results_bytes + KEPT_SLACK + errors * KEPT_TEXT) {
            sim_fail(s, "limit: a session keeps %" PRIu64 " bytes", x->ops.kept_bytes);
        }
    }
    return count;
}

unsigned rules_all(struct sim *s)
{
    if (s->f == NULL) {
        return 0;
    }
    unsigned count = check_jobs(s) + check_sessions(s) + s->f->buffers.live;
    rules_explain(s);
    moves_check_all(s);
    waits_check_all(s);
    conduct_check_strikes(s);
    accounts_check(s);
    metrics_check(s);
    tokens_check(s);
    views_check(s);
    if (s->p.special == WORLD_HOLIDAY) {
        check_owners(s);
    }
    if (HASH_COUNT(s->f->tenants) <= 32 || s->settled) {
        check_tenants(s);
    }
    return count;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void check_left(struct sim *s)
{
    const struct front *f = s->f;
    equal(s, "buffers that are left", f->buffers.live, 0);
    equal(s, "arenas that are left", f->arenas.live, 0);
    equal(s, "programs that are left", f->programs.live, 0);
    equal(s, "modules that are left", f->modules.live, f->builtin_count);
    equal(s, "jobs that are left", f->job_count, 0);
    equal(s, "sessions that are left", f->session_count, 0);
    equal(s, "answers that are kept", f->kept_count, 0);
    for (const struct tenant *t = f->tenants; t != NULL; t = t->hh.next) {
        for (unsigned i = 0; i < TENANT_THINGS; i++) {
            equal(s, tenant_things[i], t->held[i], 0);
        }
        equal(s, "bytes of messages", t->message_bytes, 0);
        equal(s, "bytes of buffers", t->buffer_bytes, 0);
        equal(s, "bytes of arenas", t->arena_bytes, 0);
        equal(s, "detached jobs", t->detached, 0);
    }
    const struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        equal(s, "cells of an adoption record", record_used(d->record), 0);
        equal(s, "jobs that a device has", d->jobs, 0);
    }
}

/* What the front has freed is freed in its workers, too. */
static void check_workers_left(struct sim *s)
{
    const struct device *d;
    for (unsigned at = 0; (d = front_next_device(s->f, &at)) != NULL;) {
        const struct sim_worker *x = worker_of_device(s, worker_slot_of(s, d));
        if (x == NULL || x->state != WORKER_RUNS || x->silent || x->lied || !device_serves(d)) {
            continue;
        }
        if (x->buffers > 0) {
            sim_log(s, "worker %" PRIu64 " of device %u has buffer %#" PRIx64, x->id, x->number,
                    x->buffer[0].id);
        }
        equal(s, "buffers that are left in a worker", x->buffers, 0);
        for (const struct sim_worker_job *j = x->job; j != NULL; j = j->next) {
            if (!j->retired && !memory_failed()) {
                sim_fail(s, "left: job %" PRIu64 " is in the ledger of worker %" PRIu64, j->id,
                         x->id);
            }
        }
        equal(s, "staging memory for inputs", d->input_range.used, 0);
        equal(s, "staging memory for outputs", d->output_range.used, 0);
        equal(s, "bytes of buffers on a device", d->buffer_bytes, 0);
    }
}

/* Every request that reached the front was answered, or its connection had lost its session. */
static void check_answers(struct sim *s)
{
    for (uint64_t i = 1; i <= s->parcels; i++) {
        const struct sim_parcel *p = &s->parcel[i];
        if (p->arrived && !p->over && !p->lost && p->era == s->era) {
            sim_fail(s, "answer: request %" PRIu64 " of kind %u of client %u was never answered",
                     p->request->seq, p->request->kind, p->request->client->index);
        }
    }
}

void rules_end(struct sim *s)
{
    (void)rules_all(s);
    check_left(s);
    check_workers_left(s);
    check_answers(s);
    launcher_check_left(s);
}
