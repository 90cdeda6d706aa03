/* How long the daemon's end waits for jobs. */
#include "common/clock.h"
#include "daemon/front/model/sessions.h"
#include "daemon/front/sched/drain.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static struct fake *k;
static unsigned stranded;

static struct job *limited(uint64_t limit_ns)
{
    struct job *j = fake_job(k, 0);
    j->limit_ns = limit_ns;
    (void)fake_submit(k, j);
    return j;
}

START_TEST(the_longest_time_limit_counts)
{
    k = fake_create();
    ck_assert_uint_eq(drain_until(&k->f, 5), 5 + DRAIN_MIN_NS);
    struct job *brief = limited(NS_PER_S);
    ck_assert_uint_eq(drain_until(&k->f, 5), 5 + DRAIN_MIN_NS);
    struct job *some = limited(2 * DRAIN_MIN_NS);
    struct job *other = limited(DRAIN_MIN_NS + 1);
    ck_assert_uint_eq(drain_until(&k->f, 5), 5 + 2 * DRAIN_MIN_NS);
    struct job *day = limited(24 * 3600 * NS_PER_S);
    ck_assert_uint_eq(drain_until(&k->f, 5), 5 + DRAIN_MAX_NS);
    fake_turn(k);
    fake_done(k, day, 0);
    fake_done(k, some, 0);
    ck_assert_uint_eq(drain_until(&k->f, 5), 5 + DRAIN_MIN_NS + 1); /* ended jobs do not count */
    fake_done(k, brief, 0);
    fake_done(k, other, 0);
    fake_destroy(k);
}
END_TEST

/* A client that is connected sends its jobs again; other jobs that are not detached are cancelled.
 */
START_TEST(detached_jobs_without_a_session_go_first)
{
    k = fake_create();
    k->f.config.window = 1;
    struct job *first = limited(NS_PER_S);
    fake_turn(k);
    struct job *urgent = fake_job(k, 0);
    urgent->priority = PRIORITY_MAX;
    urgent->sched.rank = job_rank(urgent);
    (void)fake_submit(k, urgent);
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *writer = fake_job(k, 0);
    fake_writes(writer, b, 0, 64);
    (void)fake_submit(k, writer);
    struct job *waits = fake_job(k, 0); /* for the writer */
    waits->detached = true;
    fake_reads(waits, b, 0, 64);
    (void)fake_submit(k, waits);
    session_connect(&k->f, k->session, 1);
    ck_assert_uint_eq(drain_orphans(&k->f, &stranded), 0); /* its client is connected */
    session_disconnect(&k->f, k->session, NS_NEVER);
    ck_assert_uint_eq(drain_orphans(&k->f, &stranded), 1);
    job_part(waits);
    ck_assert_uint_eq(drain_orphans(&k->f, &stranded), 1);
    ck_assert_uint_eq(drain_orphans(&k->f, &stranded), 1);
    fake_done(k, first, 0);
    fake_turn(k);
    ck_assert_int_eq(writer->state, JOB_DISPATCHED);
    ck_assert_int_eq(urgent->state, JOB_QUEUED);
    ck_assert_uint_eq(drain_orphans(&k->f, &stranded), 1);
    fake_done(k, writer, 0);
    fake_turn(k);
    ck_assert_int_eq(waits->state, JOB_DISPATCHED);
    ck_assert_uint_eq(drain_orphans(&k->f, &stranded), 0); /* its worker has it */
    k->tenant->detached++;
    fake_done(k, waits, 0);
    fake_turn(k);
    fake_done(k, urgent, 0);
    fake_destroy(k);
}
END_TEST

static void orphans_are(unsigned awaited, unsigned given_up)
{
    ck_assert_uint_eq(drain_orphans(&k->f, &stranded), awaited);
    ck_assert_uint_eq(stranded, given_up);
}

/* Waiting would not help: no device will run them. */
START_TEST(jobs_that_no_device_runs_are_not_waited_for)
{
    k = fake_create();
    struct device *d = &k->device[0];
    k->f.config.window = 1;
    struct job *first = limited(NS_PER_S);
    fake_turn(k);
    struct job *bound = limited(NS_PER_S);
    struct job *any = fake_job(k, -1);
    (void)fake_submit(k, any);
    bound->detached = any->detached = true;
    orphans_are(2, 0);
    d->recovery = 1; /* its driver asks for a recovery */
    orphans_are(1, 1);
    k->device[1].state = DEVICE_ABSENT;
    orphans_are(0, 2);
    d->recovery = 0;
    d->state = DEVICE_STARTING;
    orphans_are(2, 0);
    d->failures = 2; /* its workers fail repeatedly */
    orphans_are(0, 2);
    d->failures = 0;
    d->state = DEVICE_READY;
    k->device[1].state = DEVICE_READY;
    k->tenant->detached += 2;
    fake_turn(k);
    fake_done(k, any, 0);
    fake_done(k, first, 0);
    fake_turn(k);
    fake_done(k, bound, 0);
    fake_destroy(k);
}
END_TEST

SUITE_MAIN("drain", the_longest_time_limit_counts, detached_jobs_without_a_session_go_first,
           jobs_that_no_device_runs_are_not_waited_for)
