/* When the clock is looked at: every time that something waits for is said, and nothing else. */
#include "common/clock.h"
#include "daemon/front/housekeeping.h"
#include "daemon/front/model/flight.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/sched/conclude.h"
#include "daemon/front/sched/history.h"
#include "daemon/front/sched/queue.h"
#include "daemon/front/workers/worker.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static struct fake *k;
static unsigned kills;

static int on_kill(struct launcher_link *l, uint64_t id, int signal, struct err *e)
{
    (void)l;
    (void)id;
    (void)signal;
    (void)e;
    kills++;
    return 0;
}

static void begin(void)
{
    k = fake_create();
    k->f.io.kill = on_kill;
    k->f.wake_ns = NS_NEVER;
    k->f.house_ns = NS_NEVER; /* no statistics of pools */
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        k->device[i].beat_ns = fake_now();
    }
}

/* The device has a worker, which nobody has killed yet. */
static void begin_worker(void)
{
    begin();
    kills = 0;
    k->device[0].worker = 7;
    k->device[0].pid = 1;
}

static void end_worker(struct buffer *b)
{
    k->device[0].worker = 0;
    fake_drop(k, b);
    fake_destroy(k);
}

static struct job *with_deadline(uint64_t at)
{
    struct job *j = fake_job(k, 0);
    j->deadline_ns = at;
    (void)fake_submit(k, j);
    return j;
}

START_TEST(the_earliest_counts)
{
    begin();
    wake_at(&k->f, 30);
    wake_at(&k->f, NS_NEVER);
    wake_at(&k->f, 20);
    wake_at(&k->f, 40);
    ck_assert_uint_eq(k->f.wake_ns, 20);
    fake_destroy(k);
}
END_TEST

START_TEST(deadlines)
{
    begin();
    uint64_t soon = with_deadline(1000)->id;
    uint64_t later = with_deadline(2000)->id;
    struct job *never = with_deadline(NS_NEVER);
    housekeeping_expire(&k->f, 999);
    ck_assert_uint_eq(k->f.wake_ns, 1000);
    k->f.wake_ns = NS_NEVER;
    housekeeping_expire(&k->f, 1000);
    ck_assert_int_eq(k->error[soon].code, ERR_DEADLINE);
    ck_assert_uint_eq(k->f.wake_ns, 2000);
    k->f.wake_ns = NS_NEVER;
    housekeeping_expire(&k->f, 5000);
    ck_assert_int_eq(k->error[later].code, ERR_DEADLINE);
    ck_assert_uint_eq(k->f.wake_ns, NS_NEVER);
    fake_turn(k);
    fake_done(k, never, 0);
    fake_destroy(k);
}
END_TEST

/* The history is full, and its oldest stand next to those that expire. */
START_TEST(nobody_is_forgotten_while_all_are_looked_at)
{
    begin();
    struct job *first = with_deadline(1000);
    for (unsigned i = 0; i < HISTORY_MAX; i++) {
        struct job *j = fake_job(k, 1);
        (void)fake_submit(k, j);
        struct err e = ERR_INIT;
        (void)err_set(&e, ERR_CANCELLED, "by the test");
        job_conclude(&k->f, j, JOB_CANCELLED, &e);
    }
    uint64_t id = first->id;
    uint64_t last = with_deadline(1000)->id;
    housekeeping_expire(&k->f, 1000);
    ck_assert_int_eq(k->error[id].code, ERR_DEADLINE);
    ck_assert_int_eq(k->error[last].code, ERR_DEADLINE);
    ck_assert_uint_eq(k->f.history_count, HISTORY_MAX + 2);
    fake_destroy(k);
}
END_TEST

START_TEST(limits_pauses_and_silence)
{
    begin();
    struct device *d = &k->device[0];
    uint64_t now = fake_now();
    d->worker = 7;
    d->pid = 1;
    k->device[1].state = DEVICE_WAITING;
    k->device[1].restart_ns = now + NS_PER_S;
    worker_watch(&k->f, now, 0);
    ck_assert_uint_eq(k->f.wake_ns, now + NS_PER_S); /* the pause */
    k->device[1].restart_ns = now + 100 * NS_PER_S;
    k->f.wake_ns = NS_NEVER;
    worker_watch(&k->f, now, 0);
    ck_assert_uint_gt(k->f.wake_ns, now + 2 * NS_PER_S); /* heartbeats */
    ck_assert_uint_le(k->f.wake_ns, now + 3 * NS_PER_S);
    struct job *j = fake_job(k, 0);
    j->limit_ns = 5 * NS_PER_MS;
    (void)fake_submit(k, j);
    fake_turn(k);
    uint64_t unseen = k->f.wake_ns;
    ck_assert_uint_eq(unseen, j->dispatched_ns + NS_PER_S + 10 * NS_PER_MS);
    job_set_state(j, JOB_RUNNING, now + NS_PER_MS);
    k->f.wake_ns = NS_NEVER;
    worker_watch(&k->f, now, 0);
    ck_assert_uint_eq(k->f.wake_ns, now + 6 * NS_PER_MS);
    d->worker = 0;
    fake_done(k, j, 0);
    fake_destroy(k);
}
END_TEST

static void move_to(struct job *j, unsigned stream)
{
    struct device *d = j->device;
    d->line.streams -= --d->stream_load[j->stream] == 0;
    j->stream = stream;
    d->line.streams += d->stream_load[stream]++ == 0;
}

/* The worker may have put a job behind one of another stream: while that one runs, and for a while
 * after, the one that did not begin is not to blame. */
START_TEST(who_never_began_is_not_to_blame)
{
    begin_worker();
    struct device *d = &k->device[0];
    struct job *runs = fake_job(k, 0);
    struct job *waits = fake_job(k, 0);
    runs->limit_ns = 30 * NS_PER_S;
    waits->limit_ns = 100 * NS_PER_MS;
    (void)fake_submit(k, runs);
    (void)fake_submit(k, waits);
    fake_turn(k);
    move_to(runs, 1);
    move_to(waits, 3);
    uint64_t sent = waits->dispatched_ns;
    ck_assert_uint_eq(job_overdue_ns(waits), sent + NS_PER_S + 200 * NS_PER_MS);
    job_set_state(runs, JOB_RUNNING, sent);
    d->beat_ns = sent + 10 * NS_PER_S;
    k->f.wake_ns = NS_NEVER;
    worker_watch(&k->f, sent + 10 * NS_PER_S, 0);
    ck_assert_uint_eq(d->killed_ns, 0);
    ck_assert_uint_eq(k->f.wake_ns, sent + 11 * NS_PER_S); /* it is looked at again */
    fake_pass(NS_PER_MS);
    fake_done(k, runs, 0);
    ck_assert_uint_gt(job_overdue_ns(waits), sent + NS_PER_S + 200 * NS_PER_MS);
    ck_assert_uint_eq(job_overdue_ns(waits), d->ran_ns + NS_PER_S + 200 * NS_PER_MS);
    d->worker = 0;
    fake_done(k, waits, 0);
    fake_destroy(k);
}
END_TEST

/* A job that waits for memory has no limit meanwhile, and the worker may have put others behind it:
 * their time begins when it waits no more, however that ended. */
START_TEST(who_is_behind_one_that_lacks_memory_is_not_to_blame)
{
    begin_worker();
    struct device *d = &k->device[0];
    struct job *lacks = fake_job(k, 0);
    struct job *behind = fake_job(k, 0);
    lacks->limit_ns = behind->limit_ns = 100 * NS_PER_MS;
    (void)fake_submit(k, lacks);
    (void)fake_submit(k, behind);
    fake_turn(k);
    move_to(lacks, 1);
    move_to(behind, 3);
    job_await_memory(lacks, true);
    fake_pass(10 * NS_PER_S);
    d->beat_ns = fake_now();
    worker_watch(&k->f, fake_now(), 0);
    ck_assert_uint_eq(d->killed_ns, 0);
    if (_i == 0) {
        job_await_memory(lacks, false);
        lacks->dispatched_ns = fake_now(); /* as worker_frames.c does */
    } else {
        fake_done(k, lacks, ERR_CANCELLED);
    }
    d->beat_ns = fake_now();
    worker_watch(&k->f, fake_now(), 0);
    ck_assert_uint_eq(d->killed_ns, 0);
    ck_assert_uint_ge(job_overdue_ns(behind), fake_now() + NS_PER_S);
    d->worker = 0;
    if (_i == 0) {
        fake_done(k, lacks, 0);
    }
    fake_done(k, behind, 0);
    fake_destroy(k);
}
END_TEST

/* The first worker is looked at, what it has sent is read, and it gives a sign of life. */
static void pass(uint64_t at_ns)
{
    struct device *d = &k->device[0];
    d->beat_ns = at_ns;
    worker_watch(&k->f, at_ns, 0);
    worker_watch(&k->f, at_ns, 0);
    if (kills == 0) {
        d->heard_ns = d->beat_ns = at_ns + 1;
        worker_watch(&k->f, at_ns + 1, 0);
    }
}

static struct job *runs_since(unsigned stream, uint64_t limit_ns)
{
    struct job *j = fake_job(k, 0);
    j->limit_ns = limit_ns;
    (void)fake_submit(k, j);
    fake_turn(k);
    move_to(j, stream);
    job_set_state(j, JOB_RUNNING, j->dispatched_ns);
    return j;
}

/* A device may say that a job runs which waits for units that one before it has: its time begins
 * when that one is over. */
START_TEST(who_runs_behind_another_is_not_to_blame)
{
    begin_worker();
    struct device *d = &k->device[0];
    struct job *fills = runs_since(1, 30 * NS_PER_S);
    struct job *behind = runs_since(3, 100 * NS_PER_MS);
    uint64_t at = fills->started_ns + 10 * NS_PER_S;
    ck_assert_uint_eq(job_overdue_ns(behind), NS_NEVER);
    d->beat_ns = at;
    worker_watch(&k->f, at, 0);
    ck_assert_uint_eq(kills, 0);
    k->f.wake_ns = NS_NEVER;
    fake_done(k, fills, 0);
    ck_assert_uint_le(k->f.wake_ns, fake_now()); /* it is looked at again */
    uint64_t over = job_overdue_ns(behind);
    ck_assert_uint_ge(over, d->ran_ns + 100 * NS_PER_MS);
    ck_assert_uint_le(over, fake_now() + 100 * NS_PER_MS);
    /* what begins behind it, again and again, gives it no time */
    for (unsigned i = 0; i < 3; i++) {
        fake_done(k, runs_since(0, NS_PER_S), 0);
    }
    struct job *later = runs_since(0, NS_PER_MS);
    ck_assert_uint_eq(job_overdue_ns(behind), over);
    worker_watch(&k->f, over - 1, 0);
    fake_done(k, later, 0);
    ck_assert_uint_eq(kills, 0);
    pass(over);
    ck_assert_uint_eq(kills, 1);
    ck_assert_ptr_eq(d->culprit, behind);
    d->worker = 0;
    fake_done(k, behind, 0);
    fake_destroy(k);
}
END_TEST

/* The front stood still, and reads what a worker sent before the timer's work is done. */
START_TEST(who_pauses_while_the_front_stands_still_has_not_run)
{
    begin_worker();
    struct job *j = runs_since(0, 2 * NS_PER_S);
    fake_pass(500 * NS_PER_MS);
    k->f.awake_ns = k->f.alive_ns = fake_now();
    fake_pass(10 * NS_PER_S);
    job_make_way(j);
    ck_assert_uint_ge(j->clock.spent_ns, 500 * NS_PER_MS);
    ck_assert_uint_lt(j->clock.spent_ns, NS_PER_S);
    k->f.awake_ns = NS_NEVER;
    k->device[0].worker = 0;
    fake_done(k, j, 0);
    fake_destroy(k);
}
END_TEST

/* Between its kernels a job does not run, and the time of a job behind it begins. The time that the
 * first job has used counts when it goes on, behind the second. */
START_TEST(who_waits_between_its_kernels_gives_no_time)
{
    begin_worker();
    struct device *d = &k->device[0];
    struct job *between = runs_since(0, 30 * NS_PER_S);
    struct job *hangs = runs_since(0, 100 * NS_PER_MS);
    uint64_t id = between->id;
    between->clock.turned_ns -= NS_PER_S;
    ck_assert_uint_eq(job_overdue_ns(hangs), NS_NEVER);
    k->f.wake_ns = NS_NEVER;
    job_make_way(between);
    uint64_t paused = between->clock.turned_ns;
    ck_assert_int_eq(between->state, JOB_RUNNING);
    ck_assert_uint_eq(k->f.wake_ns, paused); /* what is behind it is looked at again */
    ck_assert_uint_eq(job_overdue_ns(hangs), paused + 100 * NS_PER_MS);
    ck_assert_uint_eq(job_overdue_ns(between), paused + 61 * NS_PER_S);
    ck_assert_uint_ge(between->clock.spent_ns, NS_PER_S);
    job_make_way(between); /* said twice it changes nothing */
    ck_assert_uint_eq(between->clock.turned_ns, paused);
    job_resume(between, paused);
    ck_assert_uint_eq(job_overdue_ns(between), NS_NEVER);
    uint64_t over = job_overdue_ns(hangs);
    d->beat_ns = over;
    worker_watch(&k->f, over - 1, 0);
    ck_assert_uint_eq(kills, 0);
    pass(over);
    ck_assert_uint_eq(kills, 1);
    ck_assert(hangs->trust == TRUST_ALONE &&
              between->trust == TRUST_ALONE); /* `between` runs behind it, and may be to blame */
    fake_done(k, hangs, 0);
    ck_assert_uint_eq(job_overdue_ns(between),
                      between->clock.clear_ns + 30 * NS_PER_S - between->clock.spent_ns);
    d->worker = 0;
    fake_done(k, between, 0);
    ck_assert_int_eq(k->state[id], JOB_DONE);
    fake_destroy(k);
}
END_TEST

/* One that is paused and never seen to run again has a limit all the same: while nothing runs. */
START_TEST(who_is_paused_for_ever_is_found)
{
    begin_worker();
    struct device *d = &k->device[0];
    struct job *j = runs_since(0, 100 * NS_PER_MS);
    d->first_ns = 1;
    j->dispatched_ns = 1;
    job_make_way(j);
    uint64_t over = j->clock.turned_ns + NS_PER_S + 200 * NS_PER_MS;
    ck_assert_uint_eq(job_overdue_ns(j), over);
    d->beat_ns = over;
    worker_watch(&k->f, over - 1, 0);
    ck_assert_uint_eq(kills, 0);
    pass(over);
    ck_assert_uint_eq(kills, 1);
    ck_assert_ptr_eq(d->culprit, j);
    d->worker = 0;
    fake_done(k, j, 0);
    fake_destroy(k);
}
END_TEST

/* What runs, and what hangs behind it, and keeps it from the device. */
static void begin_hanging(struct job **ret_first, struct job **ret_behind)
{
    begin_worker();
    *ret_first = runs_since(1, NS_PER_S);
    *ret_behind = runs_since(0, 30 * NS_PER_S);
}

static void pass_limit(struct job *j)
{
    uint64_t over = job_overdue_ns(j);
    ck_assert_uint_ne(over, NS_NEVER);
    pass(over);
    ck_assert_uint_eq(kills, 1);
}

/* The next worker runs. */
static void lose(void)
{
    struct device *d = &k->device[0];
    fake_lose(k, 0, true);
    d->killed_ns = 0;
    kills = 0;
    fake_turn(k);
}

/* The first to pass its limit need not be at fault: each runs again alone, and who is will be
 * seen. */
START_TEST(who_hangs_behind_another_is_found)
{
    struct job *first;
    struct job *behind;
    begin_hanging(&first, &behind);
    struct device *d = &k->device[0];
    uint64_t id = first->id;
    uint64_t hangs = behind->id;
    pass_limit(first);
    ck_assert_ptr_null(d->culprit);
    ck_assert(first->trust == TRUST_ALONE && behind->trust == TRUST_ALONE);
    lose();
    ck_assert_uint_eq(k->ends[id] + k->ends[hangs], 0);
    ck_assert_int_eq(first->state, JOB_DISPATCHED);
    ck_assert_int_eq(behind->state, JOB_QUEUED);
    fake_done(k, first, 0);
    fake_turn(k);
    ck_assert_int_eq(behind->state, JOB_DISPATCHED);
    job_set_state(behind, JOB_RUNNING, fake_now());
    pass_limit(behind);
    ck_assert_ptr_eq(d->culprit, behind);
    lose();
    ck_assert_int_eq(k->state[id], JOB_DONE);
    ck_assert_int_eq(k->error[hangs].code, ERR_TIME_LIMIT);
    d->worker = 0;
    fake_destroy(k);
}
END_TEST

/* _i: something has ended since the other began; that has only just begun; what passes its limit
 * cannot be repeated, or is what runs again alone. */
START_TEST(who_passes_its_limit_is_to_blame)
{
    struct job *first;
    struct job *behind;
    begin_hanging(&first, &behind);
    if (_i == 0) {
        fake_pass(NS_PER_MS);
        fake_done(k, runs_since(0, NS_PER_S), 0);
    } else if (_i == 1) {
        behind->clock.turned_ns = job_overdue_ns(first) - NS_PER_MS;
    } else if (_i == 2) {
        first->origin = ORIGIN_ADOPTED;
    } else {
        first->trust = TRUST_ALONE;
    }
    pass_limit(first);
    ck_assert_ptr_eq(k->device[0].culprit, first);
    ck_assert_int_eq(behind->trust, TRUST_SHARED);
    k->device[0].worker = 0;
    fake_done(k, first, 0);
    fake_done(k, behind, 0);
    fake_destroy(k);
}
END_TEST

/* A job that writes all of a new buffer and runs, with a limit of its client's own. */
static struct job *begin_overlong(struct buffer **ret_b)
{
    begin_worker();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *j = fake_job(k, 0);
    j->limit_ns = NS_PER_MS;
    j->ceiling_ns = 30 * NS_PER_S;
    j->session = k->session;
    fake_launches(k, j, "spin");
    fake_writes(j, b, 0, b->bytes);
    (void)fake_submit(k, j);
    fake_turn(k);
    job_set_state(j, JOB_RUNNING, j->dispatched_ns);
    *ret_b = b;
    return j;
}

/* What makes the worker more than the job's tenant's own, or the job one that ends by itself. */
static void share_begin(int how)
{
    struct tenant *other = tenant_obtain(&k->f.tenants, 2000);
    ck_assert_ptr_nonnull(other);
    if (how == 0) {
        ck_assert(tenant_charge(other, 0, 16, 0));
    } else if (how == 1) {
        k->module->tenant = NULL; /* built in */
    } else if (how == 2) {
        (void)runs_since(1, 30 * NS_PER_S);
        k->device[0].inflight->device_next->tenant = other;
    } else {
        struct module *m = calloc(1, sizeof *m);
        m->tenant = other;
        device_set_put(&m->loaded, 0);
        m->id = idmap_add(&k->f.modules, m);
        ck_assert_uint_ne(m->id, 0);
    }
}

static void share_end(int how)
{
    struct tenant *other = tenant_obtain(&k->f.tenants, 2000);
    uint32_t cursor = 0;
    struct module *m = idmap_next(&k->f.modules, &cursor, NULL);
    if (how == 0) {
        tenant_discharge(other, 0, 16, 0);
    }
    if (m != NULL) {
        (void)idmap_remove(&k->f.modules, m->id);
        module_destroy(m);
    }
}

/* A limit that a client chose ends the answer, and not a worker that others use (_i: how). What it
 * writes stays blocked and undefined, and it keeps its place, until the device is done with it. */
START_TEST(a_clients_limit_ends_its_answer_only)
{
    struct buffer *b;
    struct job *j = begin_overlong(&b);
    struct device *d = &k->device[0];
    share_begin(_i);
    uint64_t id = j->id;
    uint64_t over = job_overdue_ns(j);
    k->f.wake_ns = NS_NEVER;
    pass(over);
    ck_assert_uint_eq(kills, 0);
    ck_assert_uint_eq(k->answers[id], 1);
    ck_assert_uint_eq(k->ends[id], 0);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_CANCEL], 1);
    ck_assert_int_eq(k->error[id].code, ERR_TIME_LIMIT);
    ck_assert_int_eq(k->error[id].effects, ERR_EFFECTS_MAYBE);
    ck_assert_uint_eq(job_overdue_ns(j), j->started_ns + 30 * NS_PER_S);
    ck_assert(!spans_cover(&b->defined, 0, 1));
    ck_assert_ptr_eq(d->inflight, j);
    ck_assert_uint_eq(k->session->jobs, _i == 2 ? 2 : 1);
    worker_watch(&k->f, over + NS_PER_S, 0); /* once */
    ck_assert_uint_eq(k->answers[id], 1);
    /* a job behind it waits, and a job that reads what it writes is refused */
    struct job *writes = fake_job(k, 0);
    fake_writes(writes, b, 0, 64);
    (void)fake_submit(k, writes);
    ck_assert(fake_after(writes, j));
    job_acknowledged(&k->f, j);
    fake_done(k, j, 0);
    ck_assert_uint_eq(k->ends[id], 1);
    ck_assert_int_eq(k->state[id], JOB_FAILED);
    ck_assert_int_eq(k->error[id].code, ERR_TIME_LIMIT);
    ck_assert(!spans_cover(&b->defined, 0, 1));
    fake_turn(k);
    fake_done(k, writes, 0);
    ck_assert(spans_cover(&b->defined, 0, 64));
    while (d->inflight != NULL) {
        fake_done(k, d->inflight, 0);
    }
    share_end(_i);
    end_worker(b);
}
END_TEST

/* The settings' limit ends the worker, also one that others use, and the job does not run again. */
START_TEST(the_settings_limit_ends_the_worker)
{
    struct buffer *b;
    struct job *j = begin_overlong(&b);
    struct device *d = &k->device[0];
    uint64_t id = j->id;
    share_begin(0);
    pass(job_overdue_ns(j));
    ck_assert_uint_eq(k->answers[id], 1);
    d->beat_ns = job_overdue_ns(j);
    worker_watch(&k->f, job_overdue_ns(j) - 1, 0);
    ck_assert_uint_eq(kills, 0);
    pass_limit(j);
    ck_assert_ptr_eq(d->culprit, j);
    lose();
    ck_assert_uint_eq(k->ends[id], 1);
    ck_assert_int_eq(k->error[id].code, ERR_TIME_LIMIT);
    ck_assert_ptr_null(d->inflight);
    share_end(0);
    end_worker(b);
}
END_TEST

/* FAULT other: a job's deadline passes after it was enqueued, behind work that takes longer than
 *   last time
 * required: it cannot be taken back from the device: its client is answered at the deadline,
 *   with effects maybe, and its outputs stay blocked and undefined until it ends. The front
 *   does not wait for a worker that is silent for half a second
 * defence: `worker/run/completion.c`: watch_late; `front/workers/worker.c`: check_deadlines
 * also: `worker_waiting_test`: deadlines_hold_until_a_job_begins, deadlines_hold_behind_copies,
 *   deadlines_hold_behind_what_hangs
 * mutants: deadline-in-stream, late-copies, refused-behind */
/* A job that its worker cannot take back at its deadline is answered then, when the worker says so
 * (_i == 0), or says nothing for a while, and not earlier. */
START_TEST(a_deadline_that_passes_in_a_worker)
{
    begin_worker();
    struct device *d = &k->device[0];
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *j = fake_job(k, 0);
    uint64_t at = fake_now() + NS_PER_S;
    j->deadline_ns = at;
    fake_writes(j, b, 0, 64);
    uint64_t id = fake_submit(k, j);
    k->f.wake_ns = NS_NEVER;
    fake_turn(k);
    ck_assert_uint_eq(k->f.wake_ns, at + JOB_LATE_NS);
    d->beat_ns = at + JOB_LATE_NS;
    if (_i == 0) {
        job_late(&k->f, j, at - 1);
        ck_assert_uint_eq(k->answers[id], 0);
        job_late(&k->f, j, at);
    } else {
        worker_watch(&k->f, at + JOB_LATE_NS - 1, 0);
        ck_assert_uint_eq(k->answers[id], 0);
        worker_watch(&k->f, at + JOB_LATE_NS, 0); /* what the worker has sent is read first */
        ck_assert_uint_eq(k->answers[id], 0);
        ck_assert_uint_eq(k->f.wake_ns, at + JOB_LATE_NS);
    }
    worker_watch(&k->f, at + JOB_LATE_NS, 0);
    ck_assert_uint_eq(k->answers[id], 1);
    ck_assert_int_eq(k->error[id].code, ERR_DEADLINE);
    ck_assert_int_eq(k->error[id].effects, ERR_EFFECTS_MAYBE);
    ck_assert(!spans_cover(&b->defined, 0, 1));
    fake_done(k, j, 0); /* it ran late: that is no success */
    ck_assert_int_eq(k->state[id], JOB_FAILED);
    ck_assert(!spans_cover(&b->defined, 0, 1));
    end_worker(b);
}
END_TEST

static bool something_unread(const struct link *l)
{
    (void)l;
    return true;
}

/* FAULT other: gpud stands still over a deadline, and what its worker says lies far behind
 * required: it is read before the client hears that the job is late, within a second
 * defence: `front/workers/worker.c`: check_deadlines
 * mutants: late-backlog */
START_TEST(all_that_was_sent_is_read_before_a_job_is_late)
{
    begin_worker();
    bool (*nothing_unread)(const struct link *l) = k->f.io.unread;
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *j = fake_job(k, 0);
    uint64_t at = fake_now() + NS_PER_S;
    uint64_t back = at + 60 * NS_PER_S;
    j->deadline_ns = at;
    fake_writes(j, b, 0, 64);
    uint64_t id = fake_submit(k, j);
    fake_turn(k);
    k->device[0].beat_ns = back;
    k->f.io.unread = something_unread;
    worker_watch(&k->f, back, 0);
    k->f.wake_ns = NS_NEVER;
    worker_watch(&k->f, back + NS_PER_MS, 0);
    ck_assert_uint_eq(k->answers[id], 0);
    ck_assert_uint_eq(k->f.wake_ns, back + NS_PER_MS);
    k->f.io.unread = _i == 0 ? nothing_unread : something_unread;
    worker_watch(&k->f, back + (_i == 0 ? NS_PER_MS : NS_PER_S), 0);
    ck_assert_uint_eq(k->answers[id], 1);
    fake_done(k, j, 0);
    end_worker(b);
}
END_TEST

/* Of a worker that nobody else uses it is the end, as nothing else stops a kernel. */
START_TEST(a_clients_limit_ends_a_worker_of_its_own)
{
    struct buffer *b;
    struct job *j = begin_overlong(&b);
    struct device *d = &k->device[0];
    uint64_t id = j->id;
    pass_limit(j);
    ck_assert_uint_eq(k->answers[id], 0);
    ck_assert_ptr_eq(d->culprit, j);
    lose();
    ck_assert_int_eq(k->error[id].code, ERR_TIME_LIMIT);
    end_worker(b);
}
END_TEST

/* Brief jobs are never told of as running: however many go first, the one that waits behind them
 * has its time from the last of them on. */
START_TEST(brief_jobs_ahead_take_no_time_of_who_waits)
{
    begin_worker();
    struct device *d = &k->device[0];
    struct job *brief = fake_job(k, 0);
    struct job *waits = fake_job(k, 0);
    waits->limit_ns = 100 * NS_PER_MS;
    (void)fake_submit(k, brief);
    (void)fake_submit(k, waits);
    fake_turn(k);
    move_to(brief, 1);
    move_to(waits, 3);
    waits->dispatched_ns -= 100 * NS_PER_S;
    d->beat_ns = fake_now();
    fake_done(k, brief, 0);
    uint64_t now = fake_now();
    ck_assert_uint_gt(job_overdue_ns(waits), now);
    worker_watch(&k->f, now, 0);
    ck_assert_uint_eq(d->killed_ns, 0);
    /* one that did not run shows nothing of the device */
    struct job *refused = fake_job(k, 0);
    (void)fake_submit(k, refused);
    fake_turn(k);
    uint64_t before = job_overdue_ns(waits);
    fake_done(k, refused, ERR_DEVICE_MEMORY);
    ck_assert_uint_eq(job_overdue_ns(waits), before);
    d->worker = 0;
    fake_done(k, waits, 0);
    fake_destroy(k);
}
END_TEST

/* What was sent behind a job is not before it: when it is the first that is left, it has its time
 * from then on, however many succeed on other streams. */
START_TEST(brief_jobs_behind_give_no_time)
{
    begin();
    struct job *before = fake_job(k, 0);
    struct job *hangs = fake_job(k, 0);
    hangs->limit_ns = 100 * NS_PER_MS;
    (void)fake_submit(k, before);
    (void)fake_submit(k, hangs);
    fake_turn(k);
    move_to(hangs, 3);
    hangs->dispatched_ns -= 100 * NS_PER_S;
    fake_done(k, before, 0);
    const struct device *d = &k->device[0];
    uint64_t first = d->first_ns;
    ck_assert_uint_ge(first, d->ran_ns);
    ck_assert_uint_eq(job_overdue_ns(hangs), d->ran_ns + NS_PER_S + 200 * NS_PER_MS);
    for (unsigned i = 0; i < 3; i++) {
        struct job *brief = fake_job(k, 0);
        (void)fake_submit(k, brief);
        fake_turn(k);
        fake_pass(NS_PER_MS);
        fake_done(k, brief, 0);
    }
    ck_assert_uint_gt(d->ran_ns, first);
    ck_assert_uint_eq(job_overdue_ns(hangs), first + NS_PER_S + 200 * NS_PER_MS);
    fake_done(k, hangs, 0);
    fake_destroy(k);
}
END_TEST

/* A process that stood still does not take its workers' silence for their end. */
START_TEST(silence_while_away_is_none)
{
    begin();
    uint64_t later = fake_now() + 100 * NS_PER_S;
    k->device[0].worker = 7;
    worker_watch(&k->f, later, 100 * NS_PER_S);
    ck_assert_uint_eq(k->device[0].killed_ns, 0);
    ck_assert_uint_eq(k->f.wake_ns, later + 3 * NS_PER_S);
    k->device[0].worker = 0;
    fake_destroy(k);
}
END_TEST

/* A job that runs, and one that the worker has not begun: both may have stood still. */
START_TEST(time_away_does_not_count_for_jobs)
{
    begin_worker();
    struct job *runs = runs_since(0, 2 * NS_PER_S);
    struct job *waits = fake_job(k, 0);
    waits->limit_ns = 2 * NS_PER_S;
    (void)fake_submit(k, waits);
    fake_turn(k);
    uint64_t began = runs->clock.turned_ns;
    uint64_t sent = job_overdue_ns(waits);
    uint64_t back = began + 10 * NS_PER_S;
    worker_watch(&k->f, back, 9 * NS_PER_S);
    worker_watch(&k->f, back, 0);
    ck_assert_uint_eq(kills, 0);
    ck_assert_uint_eq(job_overdue_ns(runs), began + 11 * NS_PER_S);
    ck_assert_uint_le(job_overdue_ns(waits), sent + 9 * NS_PER_S);
    ck_assert_uint_gt(job_overdue_ns(waits), back);
    pass(began + 11 * NS_PER_S); /* what it ran before and since */
    ck_assert_uint_eq(kills, 1);
    k->device[0].worker = 0;
    fake_done(k, runs, 0);
    fake_done(k, waits, 0);
    fake_destroy(k);
}
END_TEST

START_TEST(statistics_once_a_second_and_only_after_changes)
{
    begin();
    k->device[0].link = NULL; /* nobody to ask */
    k->f.house_ns = 0;
    housekeeping(&k->f, NS_PER_S);
    ck_assert_uint_eq(k->f.wake_ns, NS_NEVER);
    wake_for_pool(&k->f, &k->device[0]);
    ck_assert_uint_eq(k->f.wake_ns, 2 * NS_PER_S);
    k->f.wake_ns = NS_NEVER;
    housekeeping(&k->f, NS_PER_S + 1); /* too early */
    ck_assert(k->device[0].pool_changed);
    ck_assert_uint_eq(k->f.wake_ns, 2 * NS_PER_S);
    k->f.wake_ns = NS_NEVER;
    housekeeping(&k->f, 2 * NS_PER_S);
    ck_assert(!k->device[0].pool_changed);
    ck_assert_uint_eq(k->f.wake_ns, NS_NEVER);
    fake_destroy(k);
}
END_TEST

/* Those that wait for a kernel are looked at again one by one, and no others are. */
START_TEST(jobs_that_wait_for_a_kernel_are_offered_in_slices)
{
    enum { WAITING = 5 };
    struct job *j[WAITING];
    unsigned ready = 0;
    begin();
    k->module->loaded = (struct device_set){0};
    for (unsigned i = 0; i < WAITING; i++) {
        j[i] = fake_job(k, 0);
        fake_launches(k, j[i], "spin");
        (void)fake_submit(k, j[i]);
    }
    fake_turn(k);
    ck_assert_uint_eq(k->f.awaiting_count, WAITING);
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_CANCELLED, "by the test");
    job_conclude(&k->f, j[1], JOB_CANCELLED, &e);
    ck_assert_uint_eq(k->f.awaiting_count, WAITING - 1);
    ck_assert(queue_offer_awaiting(&k->f));
    k->f.work.budget = 2;
    k->f.work.done = 0;
    queue_awaiting_turn(&k->f);
    for (unsigned i = 0; i < WAITING; i++) {
        ready += i != 1 && j[i]->sched.ready.in;
    }
    ck_assert_uint_eq(ready, 2);
    k->f.work.budget = 0;
    fake_turn(k); /* the kernel is not there yet: they wait behind the others */
    ck_assert_uint_eq(k->f.awaiting_count, WAITING - 1);
    ck_assert_uint_eq(k->f.awaiting_offers, 2);
    queue_awaiting_turn(&k->f);
    ck_assert_uint_eq(k->f.awaiting_count, 2);
    fake_turn(k);
    memset(&k->module->loaded, 0xff, sizeof k->module->loaded);
    ck_assert(queue_offer_awaiting(&k->f));
    queue_awaiting_turn(&k->f);
    ck_assert(!queue_offer_awaiting(&k->f));
    fake_turn(k);
    for (unsigned i = 0; i < WAITING; i++) {
        if (i != 1) {
            fake_done(k, j[i], 0);
            fake_turn(k);
        }
    }
    fake_destroy(k);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_earliest_counts,
        deadlines,
        nobody_is_forgotten_while_all_are_looked_at,
        jobs_that_wait_for_a_kernel_are_offered_in_slices,
        limits_pauses_and_silence,
        who_never_began_is_not_to_blame,
        who_runs_behind_another_is_not_to_blame,
        who_hangs_behind_another_is_found,
        who_pauses_while_the_front_stands_still_has_not_run,
        who_waits_between_its_kernels_gives_no_time,
        who_is_paused_for_ever_is_found,
        brief_jobs_ahead_take_no_time_of_who_waits,
        brief_jobs_behind_give_no_time,
        silence_while_away_is_none,
        time_away_does_not_count_for_jobs,
        statistics_once_a_second_and_only_after_changes,
    };
    Suite *suite = suite_create("due");
    TCase *tcase = tcase_create("due");
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        tcase_add_test(tcase, tests[i]);
    }
    tcase_add_loop_test(tcase, who_is_behind_one_that_lacks_memory_is_not_to_blame, 0, 2);
    tcase_add_loop_test(tcase, who_passes_its_limit_is_to_blame, 0, 4);
    tcase_add_loop_test(tcase, a_clients_limit_ends_its_answer_only, 0, 4);
    tcase_add_loop_test(tcase, a_deadline_that_passes_in_a_worker, 0, 2);
    tcase_add_loop_test(tcase, all_that_was_sent_is_read_before_a_job_is_late, 0, 2);
    tcase_add_test(tcase, the_settings_limit_ends_the_worker);
    tcase_add_test(tcase, a_clients_limit_ends_a_worker_of_its_own);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
