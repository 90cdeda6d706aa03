/* Ends of a domain's worker for a job: turns that overrun, and jobs that are killed. Device 0 has
 * the shared worker, of tenant `good`, and a domain, of tenant `bad`. */
#include <string.h>

#include "daemon/front/model/domain.h"
#include "daemon/front/model/flight.h"
#include "daemon/front/sched/completion.h"
#include "daemon/front/sched/conclude.h"
#include "daemon/front/sched/conduct.h"
#include "daemon/front/sched/turns.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

#define MINE     DEVICES_MAX /* place of the domain */
#define LENGTH   TURN_LEAST_NS
#define OVERRUN  (50 * NS_PER_MS)
#define ENDLESS  "endless"
#define HARMLESS "harmless"

static struct fake *k;
static struct device *shared, *domain;
static struct tenant *bad, *good;
static unsigned kills;
static bool silent; /* the domain's worker gives no sign of life */

static int on_kill(struct launcher_link *l, uint64_t id, int signal, struct err *e)
{
    (void)l;
    (void)signal;
    (void)e;
    ck_assert_uint_eq(id, domain->worker); /* and never the shared one */
    kills++;
    return 0;
}

static void begin(void)
{
    k = fake_create();
    kills = 0;
    silent = false;
    bad = k->tenant;
    good = tenant_named(&k->f.tenants, "good");
    ck_assert_ptr_nonnull(good);
    shared = &k->device[0];
    domain = &k->device[1];
    k->f.io.kill = on_kill;
    k->f.config.turn_overrun_ms = OVERRUN / NS_PER_MS;
    k->f.device_count = 1;
    k->f.domain_count = 1;
    k->f.domain_end = MINE + 1;
    k->f.device[1] = NULL;
    k->f.device[MINE] = domain;
    domain->index = MINE;
    domain->base = shared;
    domain->owner = bad;
    domain->worker = 7;
    shared->worker = 6;
    shared->domains = domain;
    bad->apart = true;
    bad->domains = 1;
}

static void finish(void)
{
    k->f.device[1] = domain;
    k->f.device[MINE] = NULL;
    k->f.device_count = FAKE_DEVICES;
    k->f.domain_count = k->f.domain_end = 0;
    domain->index = 1;
    domain->base = NULL;
    domain->owner = NULL;
    domain->worker = shared->worker = 0;
    shared->domains = NULL;
    bad->domains = 0;
    fake_destroy(k);
}

static struct job *submit(struct tenant *t, const char *entry)
{
    struct job *j = fake_job(k, t == bad ? 1 : 0);
    j->tenant = t;
    fake_launches(k, j, entry);
    (void)fake_submit(k, j);
    fake_turn(k);
    return j;
}

/* The worker reports that it sees the job run. */
static void runs(struct job *j)
{
    ck_assert_int_eq(j->state, JOB_DISPATCHED);
    job_set_state(j, JOB_RUNNING, fake_now());
}

static void pass(uint64_t ns)
{
    fake_pass(ns);
    domain->beat_ns = silent ? domain->beat_ns : fake_now();
    turns_watch(&k->f, fake_now(), false);
    turns_watch(&k->f, fake_now(), false); /* the loop has read what workers sent */
    fake_turn(k);
}

/* The launcher reports the end of the domain's worker. Another one comes at once. */
static void ended(void)
{
    ck_assert_uint_ne(domain->killed_ns, 0);
    bool external = domain->culprit == NULL;
    domain->killed_ns = 0;
    completion_lost(&k->f, domain, external, "its worker was ended");
    domain->culprit = NULL;
    domain->overran = false;
    domain->epoch++;
    k->kicked = true;
    fake_turn(k);
}

static bool quarantined(const char *entry)
{
    return tenant_quarantined(bad, kernel_hash(k->module, entry));
}

/* FAULT other: a kernel of a tenant that loads kernels never ends
 * required: it costs the others of the device one overrun of its turn for each strike, and nothing
 *   once it is quarantined; the worker that others share is not ended
 * defence: `front/sched/turns.c`: turns_watch; `front/workers/worker.c`: worker_overran;
 *   `front/sched/completion.c`: overdue; `front/sched/dispatch.c`: check_strikes
 * also: `front_overrun_test`: others_go_on_beside_what_cannot_be_ended; `test_system_domains`:
 *   an_endless_kernel_costs_one_overrun_a_strike
 * mutants: turn-given, turn-overrun, turn-strike, turn-queued, turn-shared */
START_TEST(an_endless_kernel_costs_one_overrun_a_strike)
{
    begin();
    struct job *endless[2 * STRIKES_MAX];
    for (unsigned i = 0; i < 2 * STRIKES_MAX; i++) { /* all are there before the first strike */
        endless[i] = submit(bad, ENDLESS);
    }
    for (unsigned i = 0; i < STRIKES_MAX; i++) {
        ck_assert(!quarantined(ENDLESS));
        runs(endless[i]);
        struct job *other = submit(good, HARMLESS);
        ck_assert_int_eq(other->state, JOB_QUEUED);
        pass(LENGTH + OVERRUN - 1);
        ck_assert_uint_eq(kills, i);
        pass(1);
        ck_assert_uint_eq(kills, i + 1);
        ended();
        ck_assert_int_eq(endless[i]->state, JOB_FAILED);
        ck_assert_int_eq(endless[i]->error.code, ERR_TIME_LIMIT);
        ck_assert_ptr_nonnull(strstr(endless[i]->error.text, "turn_overrun_ms"));
        ck_assert_int_eq(other->state, JOB_DISPATCHED);
        fake_done(k, other, 0);
        fake_turn(k);
    }
    ck_assert(quarantined(ENDLESS) && !quarantined(HARMLESS));
    for (unsigned i = STRIKES_MAX; i < 2 * STRIKES_MAX; i++) {
        ck_assert_int_eq(endless[i]->error.code, ERR_QUARANTINED);
    }
    ck_assert_uint_eq(kills, STRIKES_MAX);
    finish();
}
END_TEST

/* Each overrun is by another kernel, so no kernel is quarantined. */
START_TEST(new_kernels_pause_their_tenant)
{
    begin();
    struct job *endless[CONDUCT_STRIKES + 1];
    for (unsigned i = 0; i <= CONDUCT_STRIKES; i++) {
        char entry[] = ENDLESS "0";
        entry[sizeof entry - 2] = (char)('0' + i);
        endless[i] = submit(bad, entry);
    }
    for (unsigned i = 0; i < CONDUCT_STRIKES; i++) {
        ck_assert_uint_eq(conduct_paused_ns(&bad->conduct, fake_now()), 0);
        runs(endless[i]);
        struct job *other = submit(good, HARMLESS);
        pass(LENGTH + OVERRUN);
        ck_assert_uint_eq(kills, i + 1);
        ended();
        fake_done(k, other, 0);
        fake_turn(k);
    }
    ck_assert_int_eq(endless[CONDUCT_STRIKES]->error.code, ERR_QUARANTINED);
    ck_assert_uint_eq(kills, CONDUCT_STRIKES);
    ck_assert_uint_eq(conduct_strikes(&good->conduct, fake_now()), 0);
    finish();
}
END_TEST

/* Its client may have its answer already: the kernel gets its strike all the same. */
START_TEST(an_answer_saves_no_kernel)
{
    begin();
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_TIME_LIMIT, "the client's own");
    for (unsigned i = 0; i < STRIKES_MAX; i++) {
        struct job *j = submit(bad, ENDLESS);
        runs(j);
        job_answer_early(&k->f, j, &e);
        struct job *other = submit(good, HARMLESS);
        pass(LENGTH + OVERRUN);
        ended();
        fake_done(k, other, 0);
        fake_turn(k);
    }
    ck_assert(quarantined(ENDLESS));
    finish();
}
END_TEST

/* The time counts from the last end of a job, and from when another worker has waited. */
START_TEST(a_long_turn_without_rivals_is_no_overrun)
{
    begin();
    struct job *a = submit(bad, HARMLESS);
    struct job *b = submit(bad, HARMLESS);
    runs(a);
    pass(10 * OVERRUN);
    struct job *other = submit(good, HARMLESS);
    pass(OVERRUN);
    ck_assert_uint_eq(kills, 0);
    fake_done(k, a, 0);
    runs(b);
    pass(OVERRUN);
    ck_assert_uint_eq(kills, 0);
    fake_done(k, b, 0);
    fake_turn(k);
    ck_assert_int_eq(other->state, JOB_DISPATCHED);
    fake_done(k, other, 0);
    finish();
}
END_TEST

/* FAULT other: a client cancels a job that waits for memory, and the next one of its stream begins
 * required: the turn has an overrun's time from that begin, and the worker is not ended before
 * defence: `front/sched/turns.c`: watch_worker
 * mutants: turn-begin */
START_TEST(a_job_behind_one_without_memory_has_its_time)
{
    begin();
    struct err e = ERR_INIT;
    struct job *lacks = submit(bad, HARMLESS);
    struct job *behind = submit(bad, HARMLESS);
    struct job *other = submit(good, HARMLESS);
    job_await_memory(lacks, true);
    pass(OVERRUN / 2);
    (void)err_set(&e, ERR_CANCELLED, "cancelled before it ran");
    job_conclude(&k->f, lacks, JOB_CANCELLED, &e);
    runs(behind);
    pass(OVERRUN);
    ck_assert_uint_eq(kills, 0);
    pass(OVERRUN);
    ck_assert_uint_eq(kills, 1);
    ended();
    fake_done(k, other, 0);
    finish();
}
END_TEST

/* A worker that stands still itself is no overrun: it is ended for its silence. */
START_TEST(a_silent_worker_is_no_overrun)
{
    begin();
    struct job *a = submit(bad, HARMLESS);
    runs(a);
    struct job *other = submit(good, HARMLESS);
    silent = true;
    pass(10 * OVERRUN);
    ck_assert_uint_eq(kills, 0);
    ck_assert_int_eq(other->state, JOB_QUEUED);
    silent = false;
    pass(OVERRUN);
    ck_assert_uint_eq(kills, 1);
    ended();
    fake_done(k, other, 0);
    finish();
}
END_TEST

/* A worker that lacks a processor is kept, and others go on beside it meanwhile. */
START_TEST(a_starved_worker_keeps_its_device_from_nobody)
{
    begin();
    struct job *a = submit(bad, HARMLESS);
    runs(a);
    struct job *other = submit(good, HARMLESS);
    silent = true;
    domain->silence = (struct silence){
        .beat_ns = domain->beat_ns, .looked_ns = domain->beat_ns + 1, .lack = LACKS_PROCESSOR};
    pass(10 * OVERRUN);
    ck_assert_uint_eq(kills, 0);
    ck_assert_int_eq(other->state, JOB_DISPATCHED);
    fake_done(k, other, 0);
    fake_done(k, a, 0);
    finish();
}
END_TEST

/* A job of `bad`, long after a rival that came beside an earlier one, and went. */
static struct job *begin_behind_a_rival(void)
{
    begin();
    struct err e = ERR_INIT;
    struct job *a = submit(bad, HARMLESS);
    struct job *other = submit(good, HARMLESS);
    (void)err_set(&e, ERR_CANCELLED, "cancelled before it ran");
    job_conclude(&k->f, other, JOB_CANCELLED, &e);
    fake_done(k, a, 0);
    fake_turn(k);
    fake_pass(NS_PER_S);
    return submit(bad, HARMLESS);
}

/* A rival that came earlier, and went, says nothing about the job that runs now. */
START_TEST(a_rival_that_went_does_not_count)
{
    struct job *a = begin_behind_a_rival();
    runs(a);
    struct job *other = submit(good, HARMLESS);
    pass(OVERRUN / 2);
    ck_assert_uint_eq(kills, 0);
    fake_done(k, a, 0);
    fake_turn(k);
    ck_assert_uint_eq(shared->turn.cost_ns, 0); /* nor about a switch */
    fake_done(k, other, 0);
    finish();
}
END_TEST

/* The same for a job of which no kernel is seen to run: others wait for it for as long. */
START_TEST(an_earlier_rival_says_nothing_about_an_unseen_job)
{
    struct job *a = begin_behind_a_rival();
    struct job *other = submit(good, HARMLESS);
    pass(OVERRUN / 2);
    ck_assert_int_eq(other->state, JOB_QUEUED);
    pass(OVERRUN);
    ck_assert_int_eq(other->state, JOB_DISPATCHED);
    fake_done(k, a, 0);
    fake_done(k, other, 0);
    finish();
}
END_TEST

/* What stands still for a while, this process or the host, is no overrun. */
START_TEST(time_away_is_no_overrun)
{
    begin();
    struct job *a = submit(bad, HARMLESS);
    runs(a);
    struct job *other = submit(good, HARMLESS);
    fake_pass(10 * OVERRUN);
    turns_watch(&k->f, fake_now(), true);
    turns_watch(&k->f, fake_now(), false);
    ck_assert_uint_eq(kills, 0);
    fake_done(k, a, 0);
    fake_turn(k);
    fake_done(k, other, 0);
    finish();
}
END_TEST

/* A shared worker is not ended, nor one that is not seen to run a job: others go on beside it. */
START_TEST(others_go_on_beside_what_cannot_be_ended)
{
    for (unsigned copies = 0; copies < 2; copies++) {
        begin();
        struct job *a = submit(copies ? bad : good, HARMLESS);
        if (!copies) {
            runs(a);
        }
        struct job *other = submit(copies ? good : bad, HARMLESS);
        ck_assert_int_eq(other->state, JOB_QUEUED);
        pass(LENGTH + OVERRUN);
        ck_assert_uint_eq(kills, 0);
        ck_assert_int_eq(other->state, JOB_DISPATCHED);
        fake_done(k, a, 0);
        fake_done(k, other, 0);
        fake_turn(k);
        fake_pass(1);
        a = submit(copies ? bad : good, HARMLESS); /* it outstays once */
        other = submit(copies ? good : bad, HARMLESS);
        ck_assert_int_eq(a->state, JOB_DISPATCHED);
        ck_assert_int_eq(other->state, JOB_QUEUED);
        fake_done(k, a, 0);
        fake_turn(k);
        fake_done(k, other, 0);
        finish();
    }
}
END_TEST

/* A worker that may have no more jobs, and whose jobs have outstayed, is passed: its tenant has had
 * the least, and others do not wait for the end of these jobs. */
START_TEST(a_worker_full_of_what_outstays_is_passed)
{
    begin();
    k->f.config.window = 1;
    for (unsigned i = 0; i < 2; i++) { /* their times are known */
        struct job *before = submit(i == 0 ? bad : good, HARMLESS);
        runs(before);
        fake_pass(i == 0 ? 50 * NS_PER_MS : NS_PER_MS);
        fake_done(k, before, 0);
        fake_turn(k);
    }
    struct job *a = submit(good, HARMLESS);
    runs(a);
    struct job *next = submit(good, HARMLESS);
    struct job *other = submit(bad, HARMLESS);
    pass(LENGTH + OVERRUN);
    pass(LENGTH + OVERRUN); /* the look before only saw the other one wait */
    ck_assert_int_eq(next->state, JOB_QUEUED);
    ck_assert_int_eq(other->state, JOB_DISPATCHED);
    fake_done(k, other, 0);
    fake_done(k, a, 0);
    fake_turn(k);
    fake_done(k, next, 0);
    finish();
}
END_TEST

/* Nor does a tenant of the same worker wait that is ahead. */
START_TEST(a_tenant_whose_jobs_outstay_is_not_waited_for)
{
    begin();
    struct tenant *third = tenant_named(&k->f.tenants, "third");
    ck_assert_ptr_nonnull(third);
    shared->streams = 1;
    struct job *before = submit(third, HARMLESS);
    runs(before);
    fake_pass(100 * NS_PER_MS);
    fake_done(k, before, 0);
    struct job *a = submit(good, HARMLESS); /* of unknown time: it leaves the next to others */
    runs(a);
    struct job *own = submit(bad, HARMLESS);
    struct job *other = submit(third, HARMLESS);
    struct job *next = submit(good, HARMLESS);
    pass(LENGTH + OVERRUN);
    ck_assert_int_eq(own->state, JOB_DISPATCHED);
    fake_done(k, own, 0);
    fake_turn(k);
    ck_assert_int_eq(other->state, JOB_DISPATCHED);
    fake_done(k, a, 0);
    fake_done(k, other, 0);
    fake_turn(k);
    fake_done(k, next, 0);
    finish();
}
END_TEST

static struct job *submit_batch(struct tenant *t)
{
    struct job *j = fake_job(k, t == bad ? 1 : 0);
    j->tenant = t;
    j->job_class = CLASS_BATCH;
    j->sched.rank = job_rank(j);
    fake_launches(k, j, HARMLESS);
    (void)fake_submit(k, j);
    fake_turn(k);
    return j;
}

/* Nor does a batch job wait for the one that is in flight, if that has outstayed as all others. */
START_TEST(batch_jobs_go_beside_what_outstays)
{
    begin();
    struct job *held = submit_batch(good);
    runs(held);
    struct job *a = submit(good, HARMLESS);
    runs(a);
    struct job *other = submit_batch(bad);
    ck_assert_int_eq(other->state, JOB_QUEUED);
    pass(LENGTH + OVERRUN);
    pass(LENGTH + OVERRUN);
    ck_assert_int_eq(other->state, JOB_DISPATCHED);
    struct job *next = submit_batch(bad); /* that one has not outstayed */
    ck_assert_int_eq(next->state, JOB_QUEUED);
    fake_done(k, other, 0);
    fake_turn(k);
    fake_done(k, next, 0);
    fake_done(k, held, 0);
    fake_done(k, a, 0);
    finish();
}
END_TEST

/* Two workers that are late at once do not hide each other. */
START_TEST(two_workers_are_late)
{
    begin();
    for (unsigned i = 0; i < 2; i++) { /* both are known for short jobs, and may have several */
        struct job *j = submit(i == 0 ? bad : good, HARMLESS);
        fake_pass(NS_PER_MS);
        fake_done(k, j, 0);
        fake_turn(k);
    }
    struct job *a = submit(bad, ENDLESS);
    job_set_wait(a, WAIT_MEMORY); /* so it does not keep the device from others */
    struct job *other = submit(good, HARMLESS);
    runs(other);
    runs(a);
    struct job *next = submit(good, HARMLESS);
    struct job *mine = submit(bad, HARMLESS);
    ck_assert_int_eq(mine->state, JOB_QUEUED);
    ck_assert_int_eq(next->state, JOB_QUEUED);
    pass(LENGTH + OVERRUN);
    pass(LENGTH + OVERRUN);
    ck_assert_uint_eq(kills, 1);
    ended();
    fake_done(k, other, 0);
    fake_turn(k);
    fake_done(k, next, 0);
    fake_turn(k);
    fake_done(k, mine, 0);
    finish();
}
END_TEST

/* A probe of the shared worker stands in no line. The domain whose turn it is waits for it, too. */
START_TEST(a_turn_waits_for_what_stood_in_no_line)
{
    begin();
    struct job *a = submit(bad, HARMLESS);
    struct job *probe = fake_job(k, 0);
    probe->tenant = NULL;
    shared->state = DEVICE_PROBING;
    shared->probe = probe;
    (void)fake_submit(k, probe);
    k->kicked = true;
    fake_turn(k);
    ck_assert_int_eq(probe->state, JOB_DISPATCHED);
    fake_done(k, a, 0);
    struct job *b = submit(bad, HARMLESS);
    ck_assert_int_eq(b->state, JOB_QUEUED);
    shared->probe = NULL;
    shared->state = DEVICE_READY;
    fake_done(k, probe, 0);
    fake_turn(k);
    ck_assert_int_eq(b->state, JOB_DISPATCHED);
    fake_done(k, b, 0);
    finish();
}
END_TEST

/* Each of two jobs may keep the other from the device: they run again, each alone. */
START_TEST(jobs_beside_each_other_run_alone)
{
    begin();
    struct job *a = submit(bad, HARMLESS);
    struct job *b = submit(bad, ENDLESS);
    runs(a);
    runs(b);
    struct job *other = submit(good, HARMLESS);
    pass(LENGTH + OVERRUN);
    ck_assert_uint_eq(kills, 1);
    ended();
    ck_assert_int_eq(a->state == JOB_QUEUED ? b->state : a->state, JOB_QUEUED);
    fake_done(k, other, 0);
    fake_turn(k);
    runs(a);
    fake_done(k, a, 0);
    fake_turn(k);
    runs(b);
    other = submit(good, HARMLESS);
    pass(LENGTH + OVERRUN);
    uint64_t id = b->id;
    ended();
    ck_assert_int_eq(k->state[id], JOB_FAILED);
    ck_assert_uint_eq(kills, 2);
    fake_done(k, other, 0);
    fake_turn(k);
    finish();
}
END_TEST

/* Where MPS runs, jobs of several workers run beside each other, and nothing overruns. */
START_TEST(mps_needs_no_turns)
{
    begin();
    (void)strcpy(k->f.config.mps_devices, "2,0");
    struct job *a = submit(bad, ENDLESS);
    struct job *b = submit(good, HARMLESS);
    runs(a);
    runs(b);
    pass(100 * OVERRUN);
    ck_assert_uint_eq(kills, 0);
    fake_done(k, a, 0);
    fake_done(k, b, 0);
    finish();
}
END_TEST

/* ---- jobs that are killed -------------------------------------------------------------------- */

/* FAULT other: a client ends a job that runs
 * required: the job ends with CANCELLED, without a strike; others in its worker run again; a worker
 *   that tenants share is not ended for it
 * defence: `front/sched/conclude.c`: job_kill; `front/sched/completion.c`: ends_cancelled
 * also: `front_overrun_test`: a_shared_worker_is_not_ended_for_a_job; `test_system_domains`:
 *   a_running_job_is_killed
 * mutants: kill-shared, kill-lost */
START_TEST(a_killed_job_ends_with_its_worker)
{
    begin();
    struct err e = ERR_INIT;
    struct buffer *b = fake_buffer(k, 0, 64, true);
    b->device = MINE;
    b->losses = &domain->losses;
    for (unsigned i = 0; i < 2 * STRIKES_MAX; i++) {
        struct job *writer = fake_job(k, 1);
        fake_launches(k, writer, ENDLESS);
        fake_writes(writer, b, 0, 64);
        uint64_t id = fake_submit(k, writer);
        fake_turn(k);
        struct job *beside = submit(bad, HARMLESS);
        runs(writer);
        ck_assert_int_eq(job_kill(&k->f, writer, &e), 0);
        ck_assert_uint_eq(kills, i + 1);
        ck_assert_int_eq(job_kill(&k->f, writer, &e), 0); /* its end is under way */
        ck_assert_uint_eq(kills, i + 1);
        ended();
        ck_assert_int_eq(k->state[id], JOB_CANCELLED);
        ck_assert_int_eq(k->error[id].code, ERR_CANCELLED);
        ck_assert_int_eq(k->error[id].effects, ERR_EFFECTS_MAYBE);
        ck_assert_int_eq(beside->state, JOB_DISPATCHED);
        ck_assert_uint_eq(beside->external, 1);
        fake_done(k, beside, 0);
        fake_turn(k);
    }
    ck_assert(!quarantined(ENDLESS));
    fake_drop(k, b);
    finish();
}
END_TEST

START_TEST(a_shared_worker_is_not_ended_for_a_job)
{
    begin();
    struct err e = ERR_INIT;
    struct job *j = submit(good, HARMLESS);
    runs(j);
    ck_assert_int_eq(job_kill(&k->f, j, &e), ERR_STATE);
    ck_assert_ptr_nonnull(strstr(e.text, "that tenants share"));
    ck_assert(!j->cancelled && kills == 0);
    fake_done(k, j, 0);
    finish();
}
END_TEST

/* A kernel whose turn has overrun gets its strike, although its client kills the job then. */
START_TEST(a_kill_saves_no_kernel)
{
    begin();
    struct err e = ERR_INIT;
    for (unsigned i = 0; i < STRIKES_MAX; i++) {
        struct job *j = submit(bad, ENDLESS);
        runs(j);
        struct job *other = submit(good, HARMLESS);
        pass(LENGTH + OVERRUN);
        ck_assert_int_eq(job_kill(&k->f, j, &e), 0);
        ended();
        fake_done(k, other, 0);
        fake_turn(k);
    }
    ck_assert(quarantined(ENDLESS));
    ck_assert_uint_eq(kills, STRIKES_MAX);
    finish();
}
END_TEST

SUITE_MAIN("overrun", a_killed_job_ends_with_its_worker, a_shared_worker_is_not_ended_for_a_job,
           a_kill_saves_no_kernel, an_endless_kernel_costs_one_overrun_a_strike,
           new_kernels_pause_their_tenant, an_answer_saves_no_kernel,
           a_long_turn_without_rivals_is_no_overrun, a_job_behind_one_without_memory_has_its_time,
           a_silent_worker_is_no_overrun, a_starved_worker_keeps_its_device_from_nobody,
           a_rival_that_went_does_not_count, an_earlier_rival_says_nothing_about_an_unseen_job,
           time_away_is_no_overrun, others_go_on_beside_what_cannot_be_ended,
           a_turn_waits_for_what_stood_in_no_line, a_worker_full_of_what_outstays_is_passed,
           a_tenant_whose_jobs_outstay_is_not_waited_for, batch_jobs_go_beside_what_outstays,
           two_workers_are_late, jobs_beside_each_other_run_alone, mps_needs_no_turns)
