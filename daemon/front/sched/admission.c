#include "daemon/front/sched/admission.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "daemon/front/model/domain.h"
#include "daemon/front/model/op.h"
#include "daemon/front/model/parking.h"
#include "daemon/front/model/session_events.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/resolve/resolve.h"
#include "daemon/front/sched/conduct.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/sched/hazard_parts.h"
#include "daemon/front/sched/kind.h"
#include "daemon/front/sched/outlook.h"
#include "daemon/front/sched/placing.h"
#include "daemon/front/sched/queue.h"
#include "daemon/front/sched/shares.h"
#include "daemon/front/workers/command.h"
#include "daemon/front/workers/domains.h"
#include "daemon/front/workers/job_frame.h"

#define HAND_OVER_RETRY_NS (200 * NS_PER_MS)
#define OTHERS_SHARE       16u /* of the limit, which one tenant leaves for others */
#define SMALL_SHARE        64u /* a request of at most this part of the limit is small */

static int refuse(struct front *f, struct err *e, int code, uint64_t retry_ns)
{
    f->count.refused++;
    if (e != NULL) {
        e->retry_after_ns = retry_ns;
    }
    return code;
}

/* Too much work is there: the more of a tenant is refused, the later it is to come again. */
static int refuse_crowd(struct front *f, struct tenant *t, struct err *e, int code)
{
    return refuse(f, e, code, crowd_pause(&t->crowd, turn_now(f)));
}

/* A tenant may fill only a part of the queue, so that others find room. */
static int check_tenant(const struct front *f, const struct tenant *t, struct err *e)
{
    int rc = tenant_check(t, TENANT_JOBS, config_tenant_jobs(&f->config), e);
    if (rc != 0 && e != NULL) {
        e->code = ERR_BUSY;
    }
    return rc != 0 ? ERR_BUSY : 0;
}

/* Checks for room in the queue, which all tenants share. A new request must not use room for which
 * parked requests wait. */
static int check_queue(struct front *f, struct session *s, uint64_t seq, struct err *e)
{
    int rc = 0;
    if (f->job_count >= f->config.queue_max) {
        rc = err_set(e, ERR_BUSY, "%u jobs are unfinished, the queue takes %llu (queue_max)",
                     f->job_count, (unsigned long long)f->config.queue_max);
    } else if (f->parked.common > 0 && f->job_count + f->parked.common >= f->config.queue_max &&
               !parking_in_turn(&f->parked, s, seq)) {
        rc = err_set(e, ERR_BUSY, "jobs of %u sessions wait for room in the queue already",
                     f->parked.common);
    }
    s->parked.common = rc != 0;
    rc = rc == 0 ? check_tenant(f, s->tenant, e) : rc;
    return rc == 0 ? 0 : refuse_crowd(f, s->tenant, e, rc);
}

static int check_conduct(struct front *f, const struct tenant *t, struct err *e)
{
    uint64_t now = turn_now(f);
    int rc = conduct_check(t, now, e);
    return rc == 0 ? 0 : refuse(f, e, rc, conduct_paused_ns(&t->conduct, now));
}

static int check_room(struct front *f, const struct session *s, uint64_t flags, struct err *e)
{
    uint64_t most = f->config.session_inflight_max;
    if (front_life_refuses_jobs(f->life)) {
        return refuse(f, e, err_set(e, ERR_DRAINING, "the daemon is draining"), NS_PER_S);
    }
    /* Handing over waits for detached jobs. */
    if (f->life == FRONT_HANDING_OVER && (flags & SUBMIT_DETACHED) != 0) {
        return refuse(
            f, e,
            err_set(e, ERR_BUSY, "the daemon restarts: submit detached jobs again afterwards"),
            HAND_OVER_RETRY_NS);
    }
    if (s->jobs >= most) {
        return refuse_crowd(f, s->tenant, e,
                            err_set(e, ERR_BUSY,
                                    "%u jobs of this session are unfinished, at most %llu "
                                    "(session_inflight_max)",
                                    s->jobs, (unsigned long long)most));
    }
    if ((flags & SUBMIT_DETACHED) != 0 && s->tenant->detached >= most) {
        return refuse_crowd(f, s->tenant, e,
                            err_set(e, ERR_BUSY,
                                    "%u detached jobs of tenant %s are unfinished, at most %llu "
                                    "(session_inflight_max)",
                                    s->tenant->detached, s->tenant->name,
                                    (unsigned long long)most));
    }
    return 0;
}

/* Requests remain in memory until their jobs leave, so the sum of their bytes is bounded. A small
 * new request may pass parked requests, because its waiting would not help them. */
static int check_bytes(struct front *f, struct session *s, const struct request *r, struct job *j,
                       struct err *e)
{
    uint64_t limit = f->config.staging_input_bytes;
    uint64_t charged = r->size; /* inputs, names and steps */
    if (j->work.input_bytes > limit) {
        return err_set(e, ERR_LIMIT,
                       "inputs of %llu bytes, staging memory has %llu ([staging] input_bytes)",
                       (unsigned long long)j->work.input_bytes, (unsigned long long)limit);
    }
    const struct tenant *t = s->tenant;
    uint64_t own = limit - limit / OTHERS_SHARE;
    if (t->input_bytes > 0 && t->input_bytes + charged > own) {
        return refuse_crowd(f, s->tenant, e,
                            err_set(e, ERR_BUSY,
                                    "requests of unfinished jobs of tenant %s take %llu bytes, at "
                                    "most %llu (of [staging] input_bytes)",
                                    t->name, (unsigned long long)t->input_bytes,
                                    (unsigned long long)own));
    }
    bool passes =
        charged <= limit / SMALL_SHARE || parking_in_turn(&f->parked, s, r->msg.submit.seq);
    uint64_t used = f->input_bytes + (passes ? 0 : f->parked.common_bytes);
    if (f->input_bytes > 0 && used + charged > limit) {
        s->parked.common = true;
        return refuse_crowd(f, s->tenant, e,
                            err_set(e, ERR_BUSY,
                                    "requests of unfinished jobs, and of those that wait for room, "
                                    "take %llu of %llu bytes ([staging] input_bytes)",
                                    (unsigned long long)used, (unsigned long long)limit));
    }
    j->charged = charged;
    return 0;
}

static int find_program(struct request_context *c, struct program **ret_program, struct err *e)
{
    const struct msg_submit *m = &c->r->msg.submit;
    if (m->program == 0) {
        return 0; /* the request has the steps */
    }
    struct program *p = idmap_get(&c->f->programs, m->program);
    if (p == NULL || p->owner != c->s) {
        return session_lacks(c->s, &c->f->programs, m->program, "program", e);
    }
    if (m->steps.count > 0 || m->temps.count > 0) {
        return err_set(e, ERR_INVALID, "a submission has a program or steps, not both");
    }
    *ret_program = program_ref(p);
    return 0;
}

/* Does a device of those that the tenant may use take new jobs, or may it do so soon? */
static int check_hope(const struct front *f, const struct tenant *t, struct err *e)
{
    for (unsigned i = 0; i < f->device_count; i++) {
        if (tenant_may_use(t, i) && device_admits(f->device[i])) {
            return 0;
        }
    }
    const struct device *drained = domain_drained(f, t, 0);
    return drained != NULL ? device_refuse_drained(drained, e) : tenant_no_device(t, e);
}

/* The steps of an inline program are in the request, which the job owns from `enter` on. resolve
 * reads them there, so inline bytes are not copied. */
static int resolve_job(struct request_context *c, struct job *j, struct err *e)
{
    const struct msg_submit *m = &c->r->msg.submit;
    const struct program *p = j->program;
    static const struct proto_list none;
    struct resolve_input in = {.buffers = &c->f->buffers,
                               .kernels = &c->f->kernels,
                               .arenas = &c->f->arenas,
                               .device = c->f->device,
                               .devices = domain_hopes(c->f, c->s->tenant, false),
                               .processors = domain_hopes(c->f, c->s->tenant, true),
                               .builtin = c->f->builtin,
                               .session = c->s,
                               .tenant = c->s->tenant,
                               .params = p != NULL ? p->params : none,
                               .temps = p != NULL ? p->temps : m->temps,
                               .steps = p != NULL ? p->steps : m->steps,
                               .bindings = m->bindings};
    return resolve(&in, &j->work, e);
}

/* The worker of a tenant that is apart may have to be made, or to start again. */
static int obtain(struct front *f, struct tenant *t, struct job *j, uint64_t wish, struct err *e)
{
    if (!t->apart) {
        return 0;
    }
    if (j->device != NULL && j->device->owner != NULL) {
        return domain_want(f, j->device, e);
    }
    return wish > 0 ? domain_obtain(f, t, f->device[wish - 1], &j->device, e)
                    : domain_obtain_any(f, t, e);
}

/* Whether the device that the job names, `wish` - 1, may be its own. made: the one that has its
 * buffers, -1: none. Buffers that a tenant has on a device it may not use any more may still be
 * read and written there. */
static int check_device(const struct front *f, const struct tenant *t, int made, uint64_t wish,
                        struct err *e)
{
    int rc = made < 0 ? check_hope(f, t, e) : 0;
    if (rc != 0 || wish == 0) {
        return rc;
    }
    if (wish > f->device_count) {
        return err_set(e, ERR_RANGE, "there is no device %llu", (unsigned long long)(wish - 1));
    }
    if (made < 0 && !tenant_may_use(t, (unsigned)(wish - 1))) {
        return tenant_refuse_device(t, (unsigned)(wish - 1), e);
    }
    if (made >= 0 && device_shown(f->device[made]) != wish - 1) {
        return err_set(e, ERR_STATE, "its buffers live on device %u, device %llu was asked for",
                       device_shown(f->device[made]), (unsigned long long)(wish - 1));
    }
    return 0;
}

static int bind_device(struct front *f, struct tenant *t, struct job *j, uint64_t wish,
                       struct err *e)
{
    int made = -1;
    j->tenant = t;
    int rc = placing_of(f, j, wish, &made, e);
    j->tenant = NULL; /* it counts for it when it enters */
    rc = rc == 0 ? check_device(f, t, made, wish, e) : rc;
    if (rc != 0) {
        return rc;
    }
    if (made >= 0 || wish > 0) {
        j->device = f->device[made >= 0 ? (unsigned)made : wish - 1];
        if (device_drains(j->device)) {
            return device_refuse_drained(j->device, e);
        }
        if (!device_hopeful(j->device)) {
            return err_set(e, ERR_NO_DEVICE, "device %u: %s", device_shown(j->device),
                           j->device->reason);
        }
    }
    rc = obtain(f, t, j, wish, e);
    if (rc == 0 && j->device != NULL) {
        j->work.device = (int)j->device->index;
    }
    return rc;
}

/* A tenant's class is the smallest of its jobs. */
static uint64_t class_of(const struct msg_submit *m, const struct tenant *t)
{
    uint64_t wish = m->job_class != CLASS_USUAL ? m->job_class : CLASS_INTERACTIVE;
    return wish > t->limits.job_class ? wish : t->limits.job_class;
}

static void take_options(const struct front *f, const struct session *s, struct job *j,
                         const struct msg_submit *m)
{
    uint64_t ceiling = tenant_time_limit_ns(s->tenant, f->config.time_limit_ms * NS_PER_MS);
    j->async = (m->flags & SUBMIT_ASYNC) != 0;
    j->detached = (m->flags & SUBMIT_DETACHED) != 0;
    j->priority = m->priority;
    j->trace_id = m->trace_id;
    j->ceiling_ns = ceiling;
    j->limit_ns = m->limit_ns > 0 && m->limit_ns < ceiling ? m->limit_ns : ceiling;
    j->deadline_ns = m->deadline_ns > 0 ? ns_add(j->submitted_ns, m->deadline_ns) : NS_NEVER;
    j->job_class = class_of(m, s->tenant);
    j->sched.rank = job_rank(j);
    j->sched.urgent = j->job_class == CLASS_REALTIME;
    (void)bytes_to_str(m->label, j->label, sizeof j->label);
}

/* A deadline that cannot be kept. Of a job that waits for a device nothing is known. */
static int check_deadline(struct front *f, const struct session *s, struct job *j, struct err *e)
{
    j->tenant = s->tenant;
    bool known = j->deadline_ns != NS_NEVER && (j->device == NULL || device_serves(j->device)) &&
                 shares_reserve(f, s->tenant, j);
    int rc = known ? outlook_admit(f, j, e) : 0;
    j->tenant = NULL;
    return rc == 0 ? 0 : refuse(f, e, rc, 0);
}

/* false: no memory, and nothing happened. */
static bool list(struct request_context *c, struct job *j)
{
    j->id = command_job_id(c->f);
    j->seq = c->o->seq;
    j->result = j->async ? async_result_reserve() : NULL;
    if ((j->async && j->result == NULL) || !shares_reserve(c->f, c->s->tenant, j) ||
        !job_join(j, c->s)) {
        return false;
    }
    if (!job_put(&c->f->jobs, j)) {
        job_part(j);
        return false;
    }
    return true;
}

static void enter(struct request_context *c, struct job *j)
{
    struct front *f = c->f;
    j->session_id = c->s->id;
    j->tenant = c->s->tenant;
    j->request = c->r;
    c->r = NULL;
    f->job_count++;
    f->queued_count++;
    j->tenant->held[TENANT_JOBS]++;
    if (j->device != NULL) {
        j->device->jobs++;
    }
    j->tenant->input_bytes += j->charged;
    f->count.submitted++;
    f->input_bytes += j->charged;
    j->tenant->jobs_submitted++;
    j->tenant->detached += j->detached;
    c->o->job = j->id;
    wake_for_job(f, j);
    j->op = j->async ? NULL : c->o;
    for (unsigned i = 0; i < j->work.module_count; i++) {
        j->work.modules[i]->users++;
    }
    if (j->program != NULL) {
        j->program->runs++;
    }
    if (f->watchers > 0) {
        f->hooks.job_admitted(f, j);
    }
    queue_offer(f, j);
    queue_raise(f, j);
}

static int accepted(struct request_context *c, const struct job *j, struct err *e)
{
    if (!j->async) {
        return 0;
    }
    struct msg_accepted m = {.job = j->id};
    return proto_encode(&schema_msg_accepted, &m, c->out, e);
}

/* A job that uses arenas waits for adopted jobs that use arenas, because the front does not know
 * their parts. */
static int after_adopted(struct request_context *c, struct job *j, struct err *e)
{
    if (j->work.arena_count == 0 || c->f->adopted_arenas == 0) {
        return 0;
    }
    for (struct job *before = c->f->jobs; before != NULL; before = before->hh.next) {
        bool own = before->session == c->s || before->session == NULL;
        bool waits = own && before->origin == ORIGIN_ADOPTED_ARENAS && !job_ended(before);
        if (waits && !hazard_after(before, j)) {
            hazard_leave(&c->f->hazards, j);
            return err_set(e, ERR_NOMEM, "no memory to order jobs");
        }
    }
    return 0;
}

/* Takes its place among the jobs that use the same memory. A failure leaves it again. */
static int line_up(struct request_context *c, struct job *j, struct err *e)
{
    int rc = hazard_enter(j, e);
    rc = rc == ERR_BUSY ? refuse_crowd(c->f, c->s->tenant, e, rc) : rc;
    rc = rc == 0 ? after_adopted(c, j, e) : rc;
    if (rc == 0 && (rc = check_deadline(c->f, c->s, j, e)) != 0) {
        hazard_leave(&c->f->hazards, j);
    }
    return rc;
}

int request_submit(struct request_context *c, struct err *e)
{
    struct front *f = c->f;
    c->s->parked.common = false;
    int rc = check_room(f, c->s, c->r->msg.submit.flags, e);
    rc = rc == 0 ? check_conduct(f, c->s->tenant, e) : rc;
    rc = rc == 0 ? check_queue(f, c->s, c->o->seq, e) : rc;
    if (rc != 0) {
        return rc;
    }
    struct job *j = freelist_take(&f->job_freelist, sizeof *j);
    if (j == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a job");
    }
    err_init(&j->error);
    j->input = RANGE_NONE;
    j->output = RANGE_NONE;
    j->submitted_ns = session_first_try_ns(c->s, c->r->msg.submit.seq, turn_now(f));
    work_init(&j->work);
    take_options(f, c->s, j, &c->r->msg.submit);
    rc = find_program(c, &j->program, e);
    if (rc == 0) {
        rc = resolve_job(c, j, e);
        j->sched.kind = kind_of(&j->work);
        unsigned parts = j->work.arena_count > 0 ? parts_beside(j) : 0;
        turn_count(f, work_units(&j->work) + parts / PARTS_A_UNIT);
    }
    if (rc == 0) {
        rc = job_frame_check(j, true, e);
    }
    if (rc == 0) {
        rc = check_bytes(f, c->s, c->r, j, e);
    }
    if (rc == 0) {
        rc = bind_device(f, c->s->tenant, j, c->r->msg.submit.device, e);
        f->count.refused += rc == ERR_DRAINING || rc == ERR_BUSY;
    }
    rc = rc == 0 ? line_up(c, j, e) : rc;
    if (rc == 0 && !list(c, j)) {
        hazard_leave(&f->hazards, j);
        rc = err_set(e, ERR_NOMEM, "no memory for a job");
    }
    if (rc != 0) {
        job_destroy(j);
        return rc;
    }
    work_moves(&j->work, &j->to_device, &j->from_device);
    enter(c, j);
    return accepted(c, j, e);
}
