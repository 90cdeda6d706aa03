/* How long the daemon's end waits for jobs. */
#include "common/clock.h"
#include "daemon/front/drain.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static struct fake *k;

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
    ck_assert_uint_eq(drain_until(&k->f, 5), 5 + DRAIN_MIN_NS + 1); /* ended ones do not */
    fake_done(k, brief, 0);
    fake_done(k, other, 0);
    fake_destroy(k);
}
END_TEST

/* Whose client is there is sent again by it; whose is not, and is not detached, is called back. */
START_TEST(detached_jobs_without_a_session_go_first)
{
    k = fake_create();
    k->f.config.window = 1;
    struct job *first = limited(NS_PER_S);
    fake_turn(k);
    struct job *urgent = fake_job(k, 0);
    urgent->priority = PRIORITY_MAX;
    urgent->rank = job_rank(urgent);
    (void)fake_submit(k, urgent);
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *writer = fake_job(k, 0);
    fake_writes(writer, b, 0, 64);
    (void)fake_submit(k, writer);
    struct job *waits = fake_job(k, 0); /* for the writer */
    waits->detached = true;
    fake_reads(waits, b, 0, 64);
    (void)fake_submit(k, waits);
    k->session->pipe = 1;
    ck_assert_uint_eq(drain_orphans(&k->f), 0); /* its client is there */
    k->session->pipe = 0;                       /* a session that lingers */
    ck_assert_uint_eq(drain_orphans(&k->f), 1);
    k->session->jobs--;
    waits->session = NULL;
    ck_assert_uint_eq(drain_orphans(&k->f), 1);
    ck_assert_uint_eq(drain_orphans(&k->f), 1);
    fake_done(k, first, 0);
    fake_turn(k);
    ck_assert_int_eq(writer->state, JOB_DISPATCHED);
    ck_assert_int_eq(urgent->state, JOB_QUEUED);
    ck_assert_uint_eq(drain_orphans(&k->f), 1);
    fake_done(k, writer, 0);
    fake_turn(k);
    ck_assert_int_eq(waits->state, JOB_DISPATCHED);
    ck_assert_uint_eq(drain_orphans(&k->f), 0); /* its worker has it */
    k->tenant->detached++;
    fake_done(k, waits, 0);
    fake_turn(k);
    fake_done(k, urgent, 0);
    fake_destroy(k);
}
END_TEST

SUITE_MAIN("drain", the_longest_time_limit_counts, detached_jobs_without_a_session_go_first)
