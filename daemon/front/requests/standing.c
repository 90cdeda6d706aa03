#include "daemon/front/requests/standing.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utlist.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/clients/lane.h"
#include "daemon/front/clients/listener.h"
#include "daemon/front/clients/processes.h"
#include "daemon/front/clients/reply.h"
#include "daemon/front/clients/shm.h"
#include "daemon/front/memory/arenas.h"
#include "daemon/front/memory/buffers.h"
#include "daemon/front/model/due.h"
#include "daemon/front/model/sessions.h"
#include "daemon/front/requests/requests.h"
#include "daemon/front/requests/standing_wait.h"
#include "daemon/front/requests/sweep.h"
#include "daemon/front/sched/conclude.h"
#include "daemon/front/tenants/forget.h"
#include "daemon/front/tenants/tenant_quota.h"
#include "daemon/front/views/look.h"

#define END_UNITS  8u         /* of work, to let go of a buffer */
#define REMOTE_UID UINT32_MAX /* who comes over tcp: nobody in particular */

static void watch_process(struct front *f, struct session *s, pid_t pid)
{
    if (s->pidfd >= 0) {
        processes_forget(f->processes, s->pidfd);
        (void)close(s->pidfd);
    }
    s->pid = pid;
    s->pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    if (s->pidfd >= 0) {
        processes_watch(f->processes, s->pidfd, s);
    }
}

static bool process_ended(const struct session *s)
{
    struct pollfd p = {.fd = s->pidfd, .events = POLLIN};
    return s->pidfd >= 0 && poll(&p, 1, 0) > 0;
}

/* What the client has taken already was answered by a front before this one. Workers hold what was
 * asked for by numbers below, too: no ack will name them again. */
static void resume(struct front *f, struct session *s, uint64_t first, const struct taken *taken)
{
    s->expect = first > 0 ? first : 1;
    s->acked = s->expect - 1;
    s->resumed = s->expect;
    taken_finish(&s->taken);
    s->taken = *taken;
    turn_count(f, session_skip(s, true));
    sweep_left(f, s);
}

static int welcome(struct front *f, const struct session *s, bool resumed, struct capbuf *out,
                   struct err *e)
{
    struct msg_welcome w = {
        .major = PROTO_MAJOR,
        .minor = PROTO_MINOR,
        .daemon_id = bytes_of(f->daemon_id, sizeof f->daemon_id),
        .resumed = resumed,
        .expect = s->expect,
        .max_message = PROTO_MESSAGE_MAX,
        .max_inflight = f->config.session_inflight_max,
        .max_reorder = REORDER_MAX,
        .linger_ns = f->config.session_linger_ms * NS_PER_MS,
        .build = bytes_str(f->build),
        .tenant = bytes_str(s->tenant->name),
        .may_load = rights_loads(&f->rights, s),
        .session = s->id,
        .shm = bytes_str(s->local && f->shm != NULL ? shm_path(f->shm) : ""),
        .max_arena = s->local && f->shm != NULL ? f->config.session_arena_bytes : 0,
        .max_unacked = OPS_MAX,
        .max_kept = f->config.keep_results_bytes,
        .max_early = EARLY_BYTES,
        .max_buffers = f->config.buffers_max,
        .max_arenas = f->config.arenas_max,
        .max_modules = MODULES_MAX,
        .max_programs = PROGRAMS_MAX,
        .max_requests = config_requests_max(&f->config),
    };
    return proto_encode(&schema_msg_welcome, &w, out, e);
}

static int check_hello(const struct request *r, struct err *e)
{
    const struct msg_hello *m = &r->msg.hello;
    if (m->major != PROTO_MAJOR) {
        return err_set(e, ERR_VERSION, "client speaks protocol %llu.%llu, the daemon %d.%d",
                       (unsigned long long)m->major, (unsigned long long)m->minor, PROTO_MAJOR,
                       PROTO_MINOR);
    }
    if (m->client_id.size != PROTO_CLIENT_ID_BYTES) {
        return err_set(e, ERR_PROTOCOL, "client id of %zu bytes, %u are needed", m->client_id.size,
                       PROTO_CLIENT_ID_BYTES);
    }
    return 0;
}

/* Nobody takes the room of all others. */
static uint64_t user_room(const struct config *c)
{
    uint64_t room = c->sessions_max - c->sessions_max / 4;
    return c->user_sessions_max > 0 ? c->user_sessions_max : room;
}

/* Who looks after the daemon finds a place when all are taken. */
static uint64_t spare_of(const struct front *f, const struct peer *p)
{
    return p->local && members_have(&f->rights.admins, p->uid, p->gid) ? KEEPERS_SPARE : 0;
}

static int check_room(const struct front *f, const struct peer *p, const char *tenant,
                      struct err *e)
{
    uint64_t spare = spare_of(f, p);
    const struct tenant *t = tenant_find(f->tenants, tenant_key_of(tenant));
    uint64_t most =
        t != NULL && t->limits.sessions > 0 ? t->limits.sessions : user_room(&f->config);
    int rc = 0;
    if (f->session_count >= f->config.sessions_max + spare) {
        rc = err_set(e, ERR_BUSY, "%u sessions are open, at most %llu", f->session_count,
                     (unsigned long long)f->config.sessions_max);
    } else if (t != NULL && t->sessions >= most + spare) {
        rc = err_set(e, ERR_BUSY, "%u sessions of tenant %s are open, at most %llu (%s)",
                     t->sessions, tenant, (unsigned long long)most,
                     t->limits.sessions > 0 ? "sessions_max of its section" : "user_sessions_max");
    }
    if (rc != 0 && e != NULL) {
        e->retry_after_ns = NS_PER_S;
    }
    return rc;
}

/* A connection may say hello again (a client that forked a new standing): the old one lingers. A
 * client may be back before the end of its old connection was told: what it left there goes. */
static void tie(struct front *f, struct session *s, const struct request *r)
{
    struct session *before = sessions_find(f, r->peer.pipe);
    if (before != NULL && before != s) {
        standing_disconnected(f, r->peer.pipe);
    }
    if (s->pipe != 0 && s->pipe != r->peer.pipe) {
        standing_disconnected(f, s->pipe);
    }
    if (s->wait != NULL) {
        listener_drop(f->listener, s->wait);
        s->wait = NULL;
    }
    sessions_set_pipe(f, s, r->peer.pipe);
    s->local = r->peer.local;
    s->minor = r->msg.hello.minor;
    s->gid = r->peer.gid;
    s->lingers_until_ns = NS_NEVER;
    sessions_due(f, s);
    if (r->peer.local) {
        watch_process(f, s, r->peer.pid);
    }
    (void)bytes_to_str(r->msg.hello.name, s->name, sizeof s->name);
    s->tenant->may_load = rights_loads(&f->rights, s);
}

static int find_tenant(struct front *f, const char *name, struct tenant **ret_tenant, struct err *e)
{
    struct tenant *t = quota_tenant(f, name);
    if (t != NULL) {
        *ret_tenant = t;
        return 0;
    }
    if (HASH_COUNT(f->tenants) < TENANTS_MAX) {
        return err_set(e, ERR_NOMEM, "tenant %s", name);
    }
    int rc = err_set(e, ERR_BUSY,
                     "%u tenants have something here, as many as may: there is room for %s when "
                     "one of them has nothing any more",
                     TENANTS_MAX, name);
    if (e != NULL) {
        e->retry_after_ns = TENANT_ROOM_NS;
    }
    return rc;
}

int standing_hello(struct front *f, const struct request *r, struct capbuf *out,
                   struct session **ret_session, struct err *e)
{
    const struct msg_hello *m = &r->msg.hello;
    int rc = check_hello(r, e);
    if (rc != 0) {
        return rc;
    }
    if (r->peer.local && f->worker_uid != 0 && r->peer.uid == f->worker_uid) {
        return err_set(e, ERR_PERMISSION, "kernels run as user %u, whom nothing is served",
                       (unsigned)f->worker_uid);
    }
    const struct session_key key =
        session_key(m->client_id.data, r->peer.local ? r->peer.uid : REMOTE_UID);
    struct session *s = session_find(f->sessions, &key);
    bool known = s != NULL;
    char tenant[PROTO_NAME_MAX + 1];
    const struct tenant_peer peer = {.uid = key.uid, .gid = r->peer.gid, .local = r->peer.local};
    quota_name(f, &peer, tenant);
    struct tenant *t = NULL;
    rc = known ? 0 : check_room(f, &r->peer, tenant, e); /* one that comes back has its room */
    rc = known || rc != 0 ? rc : find_tenant(f, tenant, &t, e);
    if (rc != 0) {
        return rc;
    }
    struct taken taken = {0};
    rc = taken_read(m->taken, &taken, e);
    if (rc != 0) {
        return rc;
    }
    s = known ? s : sessions_obtain(f, &key, t);
    if (s == NULL) {
        taken_finish(&taken);
        return err_set(e, ERR_NOMEM, "session");
    }
    if (s->fresh) {
        resume(f, s, m->resume, &taken);
    } else {
        taken_finish(&taken);
    }
    tie(f, s, r);
    *ret_session = s;
    return welcome(f, s, known, out, e);
}

/* Whoever asked is gone. */
static void leave_load(struct front *f, struct module *m)
{
    struct op *o = m->pending;
    if (o != NULL && o->loose) {
        if (o->slot != NULL) {
            listener_drop(f->listener, o->slot);
        }
        op_destroy(o);
    }
    m->pending = NULL;
    module_drop(f, m);
}

/* What was to be made without a number has no owner who could learn its handle: it is asked for
 * anew, and finds what was compiled meanwhile in the cache. */
static void leave_loose_loads(struct front *f, const struct session *s)
{
    struct module *m;
    struct module *next;
    DL_FOREACH_SAFE2(s->own_modules, m, next, owned_next)
    {
        turn_count(f, 1);
        if (m->pending != NULL && m->pending->loose) {
            leave_load(f, m);
        }
    }
}

void standing_disconnected(struct front *f, uint32_t pipe)
{
    struct session *s = sessions_find(f, pipe);
    if (s == NULL) {
        return;
    }
    sessions_set_pipe(f, s, 0);
    lane_close(s->lane);
    s->lingers_until_ns = ns_add(clock_now_ns(), f->config.session_linger_ms * NS_PER_MS);
    if (s->wait != NULL) {
        listener_drop(f->listener, s->wait);
        s->wait = NULL;
    }
    if (process_ended(s)) {
        s->lingers_until_ns = 0; /* nobody comes back */
    }
    sessions_due(f, s);
    session_unpark(&f->parked, s);
    for (struct request *r; (r = session_early_drop(s)) != NULL;) {
        reply_none(f, r); /* the client sends them again */
    }
    for (struct op *o = s->open; o != NULL; o = o->open_next) {
        turn_count(f, 1);
        reply_forget(f, o);
    }
    leave_loose_loads(f, s);
}

/* ---- the end ------------------------------------------------------------------------------ */

/* Nobody asks for its answer any more: not the next front either. */
static void leave_alone(struct job *j)
{
    job_part(j);
    j->seq = 0;
    j->async = false;
}

/* What its worker has begun runs on; steps that it has not begun do not begin. Of one that is from
 * before this front nobody knows whether it was to outlive its session. */
static void call_back(struct front *f, struct job *j, bool all)
{
    if (!j->cancelled && (all || !j->adopted)) {
        j->cancelled = true;
        f->hooks.job_cancel(f, j);
    }
}

/* all: one that was to outlive it, too. */
static void end_job(struct front *f, struct job *j, bool all)
{
    bool stays = j->detached && !all;
    j->op = NULL;
    if (!stays && j->state == JOB_QUEUED) {
        struct err e = ERR_INIT;
        (void)err_set(&e, ERR_CANCELLED, "its session ended");
        job_conclude(f, j, JOB_CANCELLED, &e);
        return;
    }
    if (!stays) {
        call_back(f, j, all);
    }
    leave_alone(j);
}

/* false: the turn is over, and others are left. */
static bool end_jobs(struct front *f, struct session *s)
{
    while (s->own_jobs != NULL) { /* each leaves it */
        if (!turn_take(f, 1 + s->own_jobs->work.use_count / 4)) {
            return false;
        }
        end_job(f, s->own_jobs, s->end_all);
    }
    return true;
}

/* Lets go of the buffer, as one that opened it and as the one that made it. */
static void end_buffer(struct front *f, struct session *s, struct buffer *b)
{
    bool had = false;
    while (buffer_opener_remove(b, s)) {
        had = true;
    }
    if (b->owner == s) {
        b->pending = NULL;
        if (b->name[0] == '\0' || (b->openers == 0 && b->linger_ns == 0)) {
            buffer_drop(f, b);
            return;
        }
        buffer_unown(b);
        had = true;
    }
    if (had) {
        buffer_let_linger(f, b);
        f->hooks.buffer_meta(f, b);
    }
}

/* false: the turn is over, or a worker has to catch up. */
static bool end_buffers(struct front *f, struct session *s, bool opened)
{
    for (;;) {
        struct buffer *b = s->owned;
        if (opened) {
            b = s->openings != NULL ? s->openings->buffer : NULL;
        }
        if (b == NULL) {
            return true;
        }
        if (front_pressed(f, b->device) || !turn_take(f, END_UNITS)) {
            return false;
        }
        if (opened && s->openings->newest->older != NULL) {
            (void)buffer_opener_remove(b, s); /* others are left */
        } else {
            end_buffer(f, s, b);
        }
    }
}

static bool end_programs(struct front *f, struct session *s)
{
    while (s->own_programs != NULL && turn_take(f, END_UNITS)) {
        program_drop(f, s->own_programs);
    }
    return s->own_programs == NULL;
}

static bool end_modules(struct front *f, struct session *s)
{
    while (s->own_modules != NULL && turn_take(f, END_UNITS)) {
        leave_load(f, s->own_modules);
    }
    return s->own_modules == NULL;
}

static bool end_arenas(struct front *f, struct session *s)
{
    while (s->own_arenas != NULL && turn_take(f, END_UNITS)) {
        arena_drop(f, s->own_arenas);
    }
    return s->own_arenas == NULL;
}

static void release_job(struct front *f, uint64_t id)
{
    struct job *j = job_find(f->jobs, id);
    if (j != NULL) {
        job_taken(f, j);
    }
}

static bool end_results(struct front *f, struct async_result **list)
{
    while (*list != NULL && turn_take(f, 1)) {
        struct async_result *r = *list;
        *list = r->next;
        release_job(f, r->job);
        free(r);
    }
    return *list == NULL;
}

static bool end_answers(struct front *f, struct session *s)
{
    while (s->ops != NULL && turn_take(f, 1)) {
        release_job(f, s->ops->job);
        op_destroy(s->ops);
    }
    return s->ops == NULL && end_results(f, &s->results) && end_results(f, &s->told);
}

static bool end_stage(struct front *f, struct session *s)
{
    switch (s->end) {
    case END_JOBS:
        return end_jobs(f, s);
    case END_PROGRAMS:
        return end_programs(f, s);
    case END_MODULES:
        return end_modules(f, s);
    case END_OPENINGS:
        return end_buffers(f, s, true);
    case END_BUFFERS:
        return end_buffers(f, s, false);
    case END_ARENAS:
        return end_arenas(f, s);
    case END_ANSWERS:
        return end_answers(f, s);
    case END_DONE:
        break;
    }
    return true;
}

static void end_last(struct front *f, struct session *s)
{
    f->session_count--;
    s->tenant->sessions--;
    forget_later(f, s->tenant);
    session_destroy(s);
    f->hooks.kick(f);
}

void standing_end_some(struct front *f)
{
    while (f->ending != NULL) {
        struct session *s = f->ending;
        while (s->end < END_DONE && end_stage(f, s)) {
            s->end++;
        }
        if (s->end < END_DONE) {
            return;
        }
        f->ending = s->ending_next;
        end_last(f, s);
    }
}

/* It is nobody's standing any more; what it has goes in turns of the loop. */
static void end_with(struct front *f, struct session *s, bool all)
{
    struct session **last = &f->ending;
    log_debug("session %llu (%s) ended", (unsigned long long)s->id, s->name);
    if (s->pipe != 0) {
        standing_disconnected(f, s->pipe);
    }
    processes_forget(f->processes, s->pidfd);
    look_gone(f, s, s->hh.next);
    look_stop(f, s);
    HASH_DEL(f->sessions, s);
    agenda_drop(&f->standings, &s->due);
    sweep_stop(f, s);
    s->end = END_JOBS;
    s->end_all = all;
    while (*last != NULL) {
        last = &(*last)->ending_next;
    }
    *last = s;
    standing_end_some(f);
}

void standing_end(struct front *f, struct session *s)
{
    end_with(f, s, false);
}

/* Its descriptors may live on in a child that it forked: what was its own does not. */
static void end_process(struct front *f, struct session *s, bool all)
{
    uint32_t pipe = s->pipe;
    end_with(f, s, all);
    if (pipe != 0) {
        listener_close_pipe(f->listener, pipe);
    }
}

void standing_process_ended(struct front *f, struct session *s)
{
    end_process(f, s, false);
}

void standing_kill(struct front *f, struct session *s)
{
    end_process(f, s, true);
}

/* Its owner let go of it behind jobs that a front before this one had not given to a worker: they
 * are sent again, however long the client takes to make anew what they need before that. */
static bool awaited(const struct front *f, const struct buffer *b)
{
    const struct session_key key = session_key(b->client_id, b->uid);
    const struct session *s = session_find(f->sessions, &key);
    return s != NULL && s->expect <= b->freed_by;
}

static void drop_lingered(struct front *f, uint64_t now)
{
    struct buffer *b;
    while ((b = agenda_due(&f->lingering, now)) != NULL && turn_take(f, END_UNITS)) {
        if (awaited(f, b)) {
            b->linger_until_ns = ns_add(now, NS_PER_S);
            agenda_set(&f->lingering, &b->linger, b->linger_until_ns, b);
        } else {
            buffer_drop(f, b); /* which takes it out */
        }
    }
    due_at(f, agenda_next_ns(&f->lingering));
}

/* false: it ended. */
static bool watch(struct front *f, struct session *s, uint64_t now)
{
    if (s->pipe == 0 && (now >= s->lingers_until_ns || process_ended(s))) {
        standing_end(f, s);
        return false;
    }
    if (s->wait != NULL && now >= s->wait_until_ns) {
        standing_tell(f, s, now);
    }
    if (s->wait != NULL && now >= s->wait_until_ns) { /* there was no memory */
        s->wait_until_ns = ns_add(now, NS_PER_S);
    }
    return true;
}

void standing_watch(struct front *f, uint64_t now)
{
    struct session *s;
    while ((s = agenda_due(&f->standings, now)) != NULL && turn_take(f, 1)) {
        if (watch(f, s, now)) {
            sessions_due(f, s);
        }
    }
    due_at(f, agenda_next_ns(&f->standings));
    drop_lingered(f, now);
}
