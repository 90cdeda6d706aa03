/*
 * Jobs that wait for memory: a pause after tries that only moved buffers, and what the front hears.
 * The functions that seek the memory are the test's.
 */
#include <check.h>
#include <stdlib.h>

#include "common/clock.h"
#include "daemon/worker/spill/waiting.h"

#define TRIES 100u  /* more than a job has before it has to pause */
#define LACKS 5u    /* bytes */
#define POLLS 6000u /* in a minute */

static uint64_t changes, moved; /* spill_changes(), spill_moved() */
static bool there;              /* the memory */
static bool moving;             /* buffers are on their way */
static bool rises;              /* the worker may get more memory */
static bool assured;            /* a job may pass all others */
static const struct job *has;   /* whose buffers are on the device; NULL: no matter */
static int refusal = ERR_DEVICE_MEMORY;
static unsigned tries, failed, started;
static unsigned announced;
static uint64_t told; /* bytes that the job lacks, in the last announcement */

int __wrap_spill_acquire(struct spill *s, struct job *j, struct err *e);
uint64_t __wrap_spill_changes(const struct spill *s);
uint64_t __wrap_spill_moved(const struct spill *s);
bool __wrap_spill_moves(const struct spill *s);
bool __wrap_spill_rises(const struct spill *s);
uint64_t __wrap_spill_lacks(const struct spill *s, const struct job *j);
bool __wrap_spill_late(const struct spill *s, const struct job *j);
bool __wrap_spill_assured(const struct spill *s, const struct job *j);
enum pool_late __wrap_spill_late_memory(struct spill *s, struct job *j);

/* Each try moves a buffer to the host, unless the job has taken all others' buffers already. */
int __wrap_spill_acquire(struct spill *s, struct job *j, struct err *e)
{
    (void)s;
    bool moves = !there && has != j;
    tries++;
    moved += moves;
    changes += moves;
    moving = moving || moves;
    has = has != NULL ? j : NULL;
    return there ? 0 : err_set(e, refusal, "buffers move");
}

bool __wrap_spill_rises(const struct spill *s)
{
    (void)s;
    return rises;
}

uint64_t __wrap_spill_lacks(const struct spill *s, const struct job *j)
{
    (void)s;
    (void)j;
    return LACKS;
}

uint64_t __wrap_spill_changes(const struct spill *s)
{
    (void)s;
    return changes;
}

uint64_t __wrap_spill_moved(const struct spill *s)
{
    (void)s;
    return moved;
}

bool __wrap_spill_moves(const struct spill *s)
{
    (void)s;
    return false;
}

bool __wrap_spill_late(const struct spill *s, const struct job *j)
{
    (void)s;
    (void)j;
    return false;
}

bool __wrap_spill_assured(const struct spill *s, const struct job *j)
{
    (void)s;
    (void)j;
    return assured;
}

enum pool_late __wrap_spill_late_memory(struct spill *s, struct job *j)
{
    (void)s;
    (void)j;
    return POOL_READY;
}

/* ---- callbacks --------------------------------------------------------------------------------*/

static void on_start(void *data, struct job *j, const struct msg_f_job *msg, struct bytes frame)
{
    (void)data;
    (void)j;
    (void)msg;
    (void)frame;
    started++;
}

static void on_failure(void *data, struct job *j, const struct err *why)
{
    (void)data;
    (void)j;
    (void)why;
    failed++;
}

static void on_announced(void *data, const struct job *j, bool waits)
{
    announced += waits;
    told = waits ? waiting_wants(data, j) : told;
}

static bool is_still(void *data, const uint64_t *tenant)
{
    (void)data;
    (void)tenant;
    return !moving;
}

/* ---- the test ---------------------------------------------------------------------------------*/

static const struct waiting_callbacks callbacks = {on_start, on_failure, on_announced, is_still};

static void begin(struct waiting *w)
{
    waiting_init(w, NULL, NULL, callbacks, w);
    has = NULL;
    rises = assured = there = false;
    moving = true;
    refusal = ERR_DEVICE_MEMORY;
    tries = failed = started = announced = 0;
}

/* The job comes, and finds no memory. */
static void offer(struct waiting *w, struct job *j)
{
    const struct msg_f_job msg = {.job = j->id, .deadline_ns = NS_NEVER};
    struct capbuf frame;
    struct err e = ERR_INIT;
    capbuf_init(&frame, 4096);
    ck_assert_int_eq(proto_encode(&schema_msg_f_job, &msg, &frame, &e), 0);
    ck_assert_int_eq(waiting_offer(w, j, bytes_of(frame.data, frame.size), &msg, &e), 0);
    capbuf_finish(&frame);
}

/* The last moves end while it pauses, and make the room: it is tried again, and does not fail for
 * its last try. */
START_TEST(what_changed_during_a_pause_may_have_helped)
{
    struct job j = {.id = 1, .state = JOB_ADMITTED};
    struct waiting w;
    begin(&w);
    offer(&w, &j);
    uint64_t now = clock_now_ns();
    unsigned before = 0;
    while (tries > before && tries < TRIES) {
        before = tries;
        changes++; /* a copy ended */
        waiting_poll(&w, ++now);
    }
    ck_assert_uint_lt(tries, TRIES); /* it pauses */
    changes++;
    there = true;
    moving = false;
    waiting_poll(&w, ++now);
    ck_assert_uint_eq(failed, 0);
    waiting_poll(&w, now + NS_PER_S);
    ck_assert_uint_eq(failed, 0);
    ck_assert_uint_eq(started, 1);
}
END_TEST

/* Its tenant's limit was in the way, and then the device is full: the front hears that it has to
 * give the worker more. Without that the job would wait for ever. */
START_TEST(a_job_that_lacks_memory_later_is_announced_again)
{
    struct job j = {.id = 1, .state = JOB_ADMITTED};
    struct waiting w;
    begin(&w);
    rises = true;
    refusal = ERR_LIMIT;
    offer(&w, &j);
    uint64_t now = clock_now_ns();
    ck_assert_uint_eq(announced, 1);
    ck_assert_uint_eq(told, 0);
    changes++;
    refusal = ERR_DEVICE_MEMORY;
    waiting_poll(&w, ++now);
    ck_assert_uint_eq(announced, 2);
    ck_assert_uint_eq(told, LACKS);
    waiting_poll(&w, ++now);
    ck_assert_uint_eq(announced, 2);
    changes++;
    there = true;
    waiting_poll(&w, ++now);
    ck_assert_uint_eq(started, 1);
}
END_TEST

/* Two jobs, one of which may pass the other, take each other's buffers, and neither has room. Both
 * pause; then one has the device to itself, and fails as nothing can help it. Without that they
 * would go on together, and then pause together, for ever. */
START_TEST(jobs_that_pause_together_go_on_one_by_one)
{
    struct job one = {.id = 1, .state = JOB_ADMITTED};
    struct job two = {.id = 2, .state = JOB_ADMITTED};
    struct waiting w;
    begin(&w);
    assured = true;
    has = &two;
    offer(&w, &one);
    offer(&w, &two);
    uint64_t now = clock_now_ns();
    for (unsigned i = 0; i < POLLS && failed < 2; i++) {
        changes += moving; /* the copies ended */
        moving = false;
        now += 10 * NS_PER_MS;
        waiting_poll(&w, now);
    }
    ck_assert_uint_eq(failed, 2);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("jobs that wait");
    TCase *t = tcase_create("waiting");
    tcase_add_test(t, what_changed_during_a_pause_may_have_helped);
    tcase_add_test(t, jobs_that_pause_together_go_on_one_by_one);
    tcase_add_test(t, a_job_that_lacks_memory_later_is_announced_again);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int bad = srunner_ntests_failed(r);
    srunner_free(r);
    return bad == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
