#include "daemon/front/requests/session_end.h"

#include <poll.h>
#include <stdlib.h>
#include <utlist.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/clients/lane.h"
#include "daemon/front/clients/listener.h"
#include "daemon/front/clients/processes.h"
#include "daemon/front/clients/reply.h"
#include "daemon/front/memory/arenas.h"
#include "daemon/front/memory/buffers.h"
#include "daemon/front/model/early.h"
#include "daemon/front/model/op.h"
#include "daemon/front/model/parking.h"
#include "daemon/front/model/session_events.h"
#include "daemon/front/model/sessions.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/requests/events.h"
#include "daemon/front/requests/requests.h"
#include "daemon/front/requests/sweep.h"
#include "daemon/front/sched/conclude.h"
#include "daemon/front/sched/history.h"
#include "daemon/front/tenants/forget.h"
#include "daemon/front/views/table_query.h"
#include "daemon/front/views/trace.h"
#include "daemon/front/workers/command.h"

#define RELEASE_UNITS 8u /* units of work to release one resource */

static bool process_ended(const struct session *s)
{
    struct pollfd p = {.fd = s->client.pidfd, .events = POLLIN};
    return s->client.pidfd >= 0 && poll(&p, 1, 0) > 0;
}

/* Drops a module, whether or not its load is answered. A load without a number gets no answer. */
static void leave_load(struct front *f, struct module *m)
{
    struct op *o = m->pending;
    if (o != NULL && op_unnumbered(o)) {
        if (o->slot != NULL) {
            f->io.drop(f->listener, o->slot);
        }
        op_destroy(o);
    }
    m->pending = NULL;
    module_drop(f, m);
}

/* Without its connection, a client cannot learn the handle from a load without a number. It asks
 * again, and then the cache has the binary. */
static void leave_loose_loads(struct front *f, const struct session *s)
{
    struct module *m;
    struct module *next;
    DL_FOREACH_SAFE2(s->own_modules, m, next, owned_next)
    {
        turn_count(f, 1);
        if (m->pending != NULL && op_unnumbered(m->pending)) {
            leave_load(f, m);
        }
    }
}

void session_disconnected(struct front *f, uint32_t pipe)
{
    struct session *s = sessions_find(f, pipe);
    if (s == NULL) {
        return;
    }
    lane_close(s->lane);
    if (s->events.wait != NULL) {
        f->io.drop(f->listener, s->events.wait);
        s->events.wait = NULL;
    }
    /* a client whose process has ended does not come back */
    uint64_t linger_ns = f->config.session_linger_ms * NS_PER_MS;
    session_disconnect(f, s, process_ended(s) ? 0 : ns_add(front_now(f), linger_ns));
    parking_remove(&f->parked, s);
    early_due_remove(&f->early_due, s);
    for (struct request *r; (r = early_drop(s)) != NULL;) {
        reply_none(f, r); /* the client sends them again */
    }
    for (struct op *o = s->ops.open; o != NULL; o = o->open_next) {
        turn_count(f, 1);
        reply_forget(f, o);
    }
    leave_loose_loads(f, s);
}

/* ---- the end ------------------------------------------------------------------------------ */

/* Neither a client nor a later front will ask for the job's answer. */
static void leave_alone(struct job *j)
{
    job_part(j);
    j->seq = 0;
    j->async = false;
}

/* Cancels a job in flight: steps that have begun run on, the others do not begin. An adopted job is
 * cancelled only with `all`, because it may be a detached one. */
static void call_back(struct front *f, struct job *j, bool all)
{
    if (all || !job_adopted(j)) {
        job_cancel(f, j);
    }
}

/* all: ends detached jobs, too. */
static void end_job(struct front *f, struct job *j, bool all)
{
    bool runs_on = j->detached && !all;
    j->op = NULL;
    if (!runs_on && j->state == JOB_QUEUED) {
        struct err e = ERR_INIT;
        (void)err_set(&e, ERR_CANCELLED, "its session ended");
        job_conclude(f, j, JOB_CANCELLED, &e);
        return;
    }
    if (!runs_on) {
        call_back(f, j, all);
    }
    leave_alone(j);
}

/* false: the turn has no more units, and jobs are left. */
static bool end_jobs(struct front *f, struct session *s)
{
    while (s->own_jobs != NULL) { /* each job leaves the list */
        if (!turn_take(f, 1 + s->own_jobs->work.use_count / 4)) {
            return false;
        }
        end_job(f, s->own_jobs, s->cancels_detached);
    }
    return true;
}

/* Releases what the session has of the buffer: all openings, and its ownership. */
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
        command_buffer_record(f, b);
    }
}

/* opened: releases openings, else owned buffers. false: the turn has no more units, or a worker has
 * to catch up. */
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
        if (front_pressed(f, b->device) || !turn_take(f, RELEASE_UNITS)) {
            return false;
        }
        if (opened && s->openings->newest->older != NULL) {
            (void)buffer_opener_remove(b, s); /* the session has opened it several times */
        } else {
            end_buffer(f, s, b);
        }
    }
}

static bool end_programs(struct front *f, struct session *s)
{
    while (s->own_programs != NULL && turn_take(f, RELEASE_UNITS)) {
        program_drop(f, s->own_programs);
    }
    return s->own_programs == NULL;
}

static bool end_modules(struct front *f, struct session *s)
{
    while (s->own_modules != NULL && turn_take(f, RELEASE_UNITS)) {
        leave_load(f, s->own_modules);
    }
    return s->own_modules == NULL;
}

static bool end_arenas(struct front *f, struct session *s)
{
    while (s->own_arenas != NULL && turn_take(f, RELEASE_UNITS)) {
        arena_drop(f, s->own_arenas);
    }
    return s->own_arenas == NULL;
}

static void release_job(struct front *f, uint64_t id)
{
    struct job *j = job_find(f->jobs, id);
    if (j != NULL) {
        job_acknowledged(f, j);
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
    while (s->ops.all != NULL && turn_take(f, 1)) {
        release_job(f, s->ops.all->job);
        op_destroy(s->ops.all);
    }
    return s->ops.all == NULL && end_results(f, &s->events.results) &&
           end_results(f, &s->events.sent);
}

/* false: the step goes on in a later turn. */
static bool end_step(struct front *f, struct session *s)
{
    switch (s->state) {
    case SESSION_ENDING_JOBS:
        return end_jobs(f, s);
    case SESSION_ENDING_PROGRAMS:
        return end_programs(f, s);
    case SESSION_ENDING_MODULES:
        return end_modules(f, s);
    case SESSION_ENDING_OPENINGS:
        return end_buffers(f, s, true);
    case SESSION_ENDING_BUFFERS:
        return end_buffers(f, s, false);
    case SESSION_ENDING_ARENAS:
        return end_arenas(f, s);
    case SESSION_ENDING_ANSWERS:
        return end_answers(f, s);
    default:
        return true;
    }
}

static void end_last(struct front *f, struct session *s)
{
    f->session_count--;
    s->tenant->sessions--;
    forget_later(f, s->tenant);
    session_destroy(s);
    f->hooks.kick(f);
}

void session_end_some(struct front *f)
{
    while (f->ending != NULL) {
        struct session *s = f->ending;
        while (s->state != SESSION_ENDED && end_step(f, s)) {
            session_step(s, s->state + 1); /* the only step that the table allows */
        }
        if (s->state != SESSION_ENDED) {
            return;
        }
        f->ending = s->ending_next;
        end_last(f, s);
    }
}

/* Takes the session out of the tables. Its resources are released in slices. */
static void end_with(struct front *f, struct session *s, bool all)
{
    struct session **last = &f->ending;
    log_debug("session %llu (%s) ended", (unsigned long long)s->id, s->name);
    if (s->state == SESSION_CONNECTED) {
        session_disconnected(f, s->pipe);
    }
    processes_forget(f->processes, s->client.pidfd);
    f->hooks.entry_removed(f, s, s->hh.next);
    table_queries_cancel(f, s);
    trace_session_ended(f, s);
    HASH_DEL(f->sessions, s);
    agenda_drop(&f->session_timers, &s->timer);
    sweep_stop(f, s);
    session_step(s, SESSION_ENDING_JOBS);
    s->cancels_detached = all;
    while (*last != NULL) {
        last = &(*last)->ending_next;
    }
    *last = s;
    session_end_some(f);
}

void session_end(struct front *f, struct session *s)
{
    end_with(f, s, false);
}

/* The connection may still be open, because a forked child can have the descriptors of the process.
 * The session ends all the same, and the connection is closed. */
static void end_process(struct front *f, struct session *s, bool all)
{
    uint32_t pipe = s->pipe;
    end_with(f, s, all);
    if (pipe != 0) {
        f->io.close_pipe(f->listener, pipe);
    }
}

void session_process_ended(struct front *f, struct session *s)
{
    end_process(f, s, false);
}

void session_kill(struct front *f, struct session *s)
{
    end_process(f, s, true);
}

/* Whether jobs may still come that need a freed buffer: its maker sent them before BUFFER_FREE, and
 * they were queued in an earlier front. The client sends them again after it has restored what they
 * need. */
static bool awaited(const struct front *f, const struct buffer *b)
{
    const struct session_key key = session_key(b->client_id, b->user);
    const struct session *s = session_find(f->sessions, &key);
    return s != NULL && s->order.expect <= b->freed_by;
}

static void drop_lingered(struct front *f, uint64_t now)
{
    struct buffer *b;
    while ((b = agenda_due(&f->lingering, now)) != NULL && turn_take(f, RELEASE_UNITS)) {
        if (awaited(f, b)) {
            b->linger_until_ns = ns_add(now, NS_PER_S);
            agenda_set(&f->lingering, &b->linger, b->linger_until_ns, b);
        } else {
            buffer_drop(f, b); /* it leaves the agenda */
        }
    }
    wake_at(f, agenda_next_ns(&f->lingering));
}

/* Ends the session, or answers its WAIT, when the time of either is over. false: the session has
 * ended. */
static bool watch(struct front *f, struct session *s, uint64_t now)
{
    if (s->state == SESSION_LINGERING && (now >= s->lingers_until_ns || process_ended(s))) {
        session_end(f, s);
        return false;
    }
    if (s->events.wait != NULL && now >= s->events.wait_until_ns) {
        session_send_events(f, s, now);
    }
    return true;
}

void sessions_stood_still(struct front *f, uint64_t now, uint64_t away_ns)
{
    uint64_t most = ns_add(now, f->config.session_linger_ms * NS_PER_MS);
    struct session *s;
    struct session *next;
    HASH_ITER(hh, f->sessions, s, next)
    {
        if (s->state == SESSION_LINGERING && s->lingers_until_ns < most) {
            uint64_t until = ns_add(s->lingers_until_ns, away_ns);
            s->lingers_until_ns = until < most ? until : most;
            session_set_timer(f, s);
        }
    }
}

void sessions_watch(struct front *f, uint64_t now)
{
    struct session *s;
    while ((s = agenda_due(&f->session_timers, now)) != NULL && turn_take(f, 1)) {
        if (watch(f, s, now)) {
            session_set_timer(f, s);
        }
    }
    wake_at(f, agenda_next_ns(&f->session_timers));
    drop_lingered(f, now);
}
