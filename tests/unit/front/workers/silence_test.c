/* What counts of a worker's silence: the time in which its thread could have beaten. */
#include <string.h>

#include "common/clock.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/workers/silence.h"
#include "daemon/front/workers/worker.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

#define BEAT_NS  (100 * NS_PER_S) /* of the last beat */
#define LIMIT_NS (3 * NS_PER_S)

static struct silence silence;

static struct thread_look thread_in(char state, uint64_t ran_ns)
{
    return (struct thread_look){.state = state, .lack = silence_lack(state), .ran_ns = ran_ns};
}

/* Looks after so many ms of silence. */
static bool hung(uint64_t ms, char state, uint64_t ran_ms)
{
    struct thread_look look = thread_in(state, ran_ms * NS_PER_MS);
    return silence_judge(&silence, BEAT_NS, LIMIT_NS, BEAT_NS + ms * NS_PER_MS, &look);
}

static void begin(void)
{
    silence = (struct silence){.beat_ns = 0};
}

START_TEST(a_thread_that_lacks_nothing_hangs)
{
    static const char states[] = "STtZXI";
    begin();
    ck_assert(hung(3000, states[_i], 50));
}
END_TEST

START_TEST(a_thread_that_is_not_known_hangs)
{
    begin();
    ck_assert(silence_judge(&silence, BEAT_NS, LIMIT_NS, BEAT_NS + LIMIT_NS, NULL));
}
END_TEST

START_TEST(who_waits_has_time_to_a_limit)
{
    begin();
    for (uint64_t ms = 3000; ms < 63000; ms += 1000) {
        ck_assert(!hung(ms, _i == 0 ? 'R' : 'D', 50));
    }
    ck_assert(hung(63000, 'R', 50));
}
END_TEST

START_TEST(processor_time_counts)
{
    begin();
    ck_assert(!hung(3000, 'R', 7000));
    ck_assert(!hung(5000, 'R', 9000));
    ck_assert(!hung(6500, 'R', 9999)); /* not the time before the first look */
    ck_assert(hung(8000, 'R', 10000));
    ck_assert_int_eq(silence.lack, LACKS_NOTHING);
}
END_TEST

/* A thread cannot have run for longer than the time that passed. */
START_TEST(no_more_counts_than_passed)
{
    begin();
    ck_assert(!hung(3000, 'R', 0));
    ck_assert(!hung(4000, 'R', 60000));
    ck_assert(!hung(5000, 'R', 10)); /* another thread's number would wrap */
}
END_TEST

START_TEST(who_waits_and_stops_hangs)
{
    begin();
    ck_assert(!hung(3000, 'R', 0));
    ck_assert(!hung(4000, 'T', 0));
    ck_assert(!hung(5900, 'T', 0));
    ck_assert(hung(6000, 'T', 0));
}
END_TEST

START_TEST(a_beat_begins_anew)
{
    struct thread_look look = thread_in('R', 0);
    begin();
    ck_assert(!hung(3000, 'R', 0));
    ck_assert(!hung(5900, 'S', 0));
    ck_assert(
        !silence_judge(&silence, BEAT_NS + 6 * NS_PER_S, LIMIT_NS, BEAT_NS + 9 * NS_PER_S, &look));
    ck_assert_uint_eq(silence.counted_ns, 0);
}
END_TEST

/* ---- the front with a worker that is silent ------------------------------------------------ */

static struct fake *k;
static uint64_t now;
static unsigned kills;
static char state;       /* of the worker's thread; 0: not known */
static bool beats_again; /* while it is looked at */

static uint64_t on_now(void)
{
    return now;
}

static int on_kill(struct launcher_link *l, uint64_t id, int signal, struct err *e)
{
    (void)l;
    (void)id;
    (void)signal;
    (void)e;
    kills++;
    return 0;
}

static bool on_look(const struct device *d, struct thread_look *ret_look)
{
    if (beats_again) {
        k->device[d->index].beat_ns = now;
    }
    *ret_look = thread_in(state, 0);
    return state != 0;
}

static struct device *begin_front(char first)
{
    k = fake_create();
    now = fake_now();
    k->f.io.now_ns = on_now;
    k->f.io.kill = on_kill;
    k->f.io.look = on_look;
    kills = 0;
    state = first;
    beats_again = false;
    struct device *d = &k->device[0];
    d->worker = 7;
    d->pid = 1;
    d->link = NULL; /* no rings to read */
    d->beat_ns = now;
    return d;
}

static void watch_after(uint64_t ns)
{
    now += ns;
    k->f.wake_ns = NS_NEVER;
    worker_watch(&k->f, now, 0);
}

static void end_front(struct device *d)
{
    d->worker = 0;
    fake_destroy(k);
}

START_TEST(a_starved_worker_is_kept)
{
    char text[SILENCE_TEXT];
    struct device *d = begin_front('R');
    watch_after(LIMIT_NS);
    ck_assert_uint_eq(kills, 0);
    ck_assert_uint_eq(k->f.wake_ns, now + NS_PER_S);
    ck_assert(silence_excused(d));
    silence_text(d, now, text, sizeof text);
    ck_assert_str_eq(text, "no heartbeat for 3.0 s: its thread waits for a processor");
    state = 'D';
    watch_after(NS_PER_S);
    ck_assert_uint_eq(kills, 0);
    silence_note(d, now, text, sizeof text);
    ck_assert_str_eq(text, "silent for 4 s: waits for a disk");
    d->beat_ns = now;
    ck_assert(!silence_excused(d));
    watch_after(NS_PER_S);
    ck_assert_uint_eq(k->f.wake_ns, d->beat_ns + LIMIT_NS);
    ck_assert_uint_eq(kills, 0);
    end_front(d);
}
END_TEST

START_TEST(a_stopped_worker_is_ended)
{
    static const char states[] = {'T', 'S', 0};
    struct device *d = begin_front(states[_i]);
    watch_after(LIMIT_NS - 1);
    ck_assert_uint_eq(kills, 0);
    watch_after(1);
    ck_assert_uint_eq(kills, 1);
    ck_assert_str_eq(d->ending, "no heartbeat for 3.0 s");
    ck_assert(!silence_excused(d));
    end_front(d);
}
END_TEST

/* A thread that was late beats, and sleeps when it is looked at. */
START_TEST(a_beat_before_the_look_counts)
{
    struct device *d = begin_front('S');
    beats_again = true;
    watch_after(LIMIT_NS);
    ck_assert_uint_eq(kills, 0);
    ck_assert_uint_eq(k->f.wake_ns, now + LIMIT_NS);
    end_front(d);
}
END_TEST

/* ---- time limits of jobs whose worker is silent, or has not been read ------------------------ */

#define JOB_NS (5 * NS_PER_S) /* limit of the job */

static struct job *sends(struct device *d)
{
    struct link *before = d->link;
    struct job *j = fake_job(k, 0);
    j->limit_ns = j->ceiling_ns = JOB_NS;
    d->link = (struct link *)d;
    (void)fake_submit(k, j);
    fake_turn(k);
    d->link = before;
    return j;
}

static void end_job(struct device *d, struct job *j)
{
    d->worker = 0;
    fake_done(k, j, 0);
    fake_destroy(k);
}

/* FAULT 21: a worker hangs, or lacks a processor or a disk, before it has read of a job
 * required: the job is not told that it ran too long, and its tenant gets no strike
 * defence: `front/workers/worker.c`: is_overdue
 * mutants: limit-silent */
START_TEST(a_job_is_overdue_when_its_worker_lives)
{
    struct device *d = begin_front('S');
    struct job *j = sends(d);
    d->patience_ns = 100 * NS_PER_S;
    watch_after(job_overdue_ns(j) - now);
    watch_after(0);
    ck_assert_uint_eq(kills, 0);
    watch_after(10 * NS_PER_S);
    ck_assert_uint_eq(kills, 0);
    ck_assert_uint_eq(k->f.wake_ns, now + NS_PER_S);
    d->heard_ns = now;
    watch_after(0);
    ck_assert_uint_eq(kills, 1);
    ck_assert_ptr_eq(d->culprit, j);
    end_job(d, j);
}
END_TEST

/* FAULT other: gpud stands still for less than a second, and the end of a job lies unread
 * required: it is read before the job is told that it ran too long
 * defence: `front/workers/worker.c`: is_overdue
 * mutants: limit-unread */
START_TEST(what_a_worker_has_sent_is_read_before_its_job_is_overdue)
{
    struct device *d = begin_front('S');
    struct job *j = sends(d);
    d->patience_ns = 100 * NS_PER_S;
    job_set_state(j, JOB_RUNNING, now);
    watch_after(JOB_NS);
    ck_assert_uint_eq(kills, 0);
    ck_assert_uint_eq(k->f.wake_ns, now);
    watch_after(0);
    ck_assert_uint_eq(kills, 1);
    end_job(d, j);
}
END_TEST

static bool something_unread(const struct link *l)
{
    (void)l;
    return true;
}

/* FAULT other: gpud stands still, and the end of a job lies behind more frames than a turn reads
 * required: it is read before the job is told that it ran too long, within a second
 * defence: `front/workers/worker.c`: is_unread
 * mutants: limit-backlog, limit-endless */
START_TEST(all_that_was_sent_is_read_before_a_job_is_overdue)
{
    struct device *d = begin_front('S');
    struct job *j = sends(d);
    d->patience_ns = 100 * NS_PER_S;
    bool (*nothing_unread)(const struct link *l) = k->f.io.unread;
    k->f.io.unread = something_unread;
    job_set_state(j, JOB_RUNNING, now);
    watch_after(JOB_NS);
    watch_after(NS_PER_MS);
    ck_assert_uint_eq(kills, 0);
    ck_assert_uint_eq(k->f.wake_ns, now);
    k->f.io.unread = _i == 0 ? nothing_unread : something_unread;
    watch_after(_i == 0 ? 0 : NS_PER_S);
    ck_assert_uint_eq(kills, 1);
    end_job(d, j);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("silence");
    TCase *tcase = tcase_create("silence");
    tcase_add_loop_test(tcase, a_thread_that_lacks_nothing_hangs, 0, 6);
    tcase_add_test(tcase, a_thread_that_is_not_known_hangs);
    tcase_add_loop_test(tcase, who_waits_has_time_to_a_limit, 0, 2);
    tcase_add_test(tcase, processor_time_counts);
    tcase_add_test(tcase, no_more_counts_than_passed);
    tcase_add_test(tcase, who_waits_and_stops_hangs);
    tcase_add_test(tcase, a_beat_begins_anew);
    tcase_add_test(tcase, a_starved_worker_is_kept);
    tcase_add_loop_test(tcase, a_stopped_worker_is_ended, 0, 3);
    tcase_add_test(tcase, a_beat_before_the_look_counts);
    tcase_add_test(tcase, a_job_is_overdue_when_its_worker_lives);
    tcase_add_test(tcase, what_a_worker_has_sent_is_read_before_its_job_is_overdue);
    tcase_add_loop_test(tcase, all_that_was_sent_is_read_before_a_job_is_overdue, 0, 2);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
