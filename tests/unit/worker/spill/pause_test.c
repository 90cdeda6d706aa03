/*
 * A job whose tries only moved buffers has to pause before its next try. The functions that seek
 * its memory are the test's.
 */
#include <check.h>
#include <stdlib.h>

#include "common/clock.h"
#include "daemon/worker/spill/waiting.h"

#define TRIES 100u /* more than a job has before it has to pause */

static uint64_t changes, moved; /* spill_changes(), spill_moved() */
static bool there;              /* the memory */
static bool moving;             /* buffers are on their way */
static unsigned tries, failed, started;

int __wrap_spill_acquire(struct spill *s, struct job *j, struct err *e);
uint64_t __wrap_spill_changes(const struct spill *s);
uint64_t __wrap_spill_moved(const struct spill *s);
bool __wrap_spill_moves(const struct spill *s);
bool __wrap_spill_rises(const struct spill *s);
bool __wrap_spill_rises(const struct spill *s)
{
    (void)s;
    return false;
}

bool __wrap_spill_late(const struct spill *s, const struct job *j);
bool __wrap_spill_assured(const struct spill *s, const struct job *j);
enum pool_late __wrap_spill_late_memory(struct spill *s, struct job *j);

/* Each try moves a buffer to the host. */
int __wrap_spill_acquire(struct spill *s, struct job *j, struct err *e)
{
    (void)s;
    (void)j;
    tries++;
    moved += !there;
    changes += !there;
    return there ? 0 : err_set(e, ERR_DEVICE_MEMORY, "buffers move");
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
    return false;
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
    (void)data;
    (void)j;
    (void)waits;
}

static bool is_still(void *data, const uint64_t *tenant)
{
    (void)data;
    (void)tenant;
    return !moving;
}

/* ---- the test ---------------------------------------------------------------------------------*/

/* The last moves end while it pauses, and make the room: it is tried again, and does not fail for
 * its last try. */
START_TEST(what_changed_during_a_pause_may_have_helped)
{
    static const struct waiting_callbacks callbacks = {on_start, on_failure, on_announced,
                                                       is_still};
    const struct msg_f_job msg = {.job = 1, .deadline_ns = NS_NEVER};
    struct job j = {.id = 1, .state = JOB_ADMITTED};
    struct capbuf frame;
    struct waiting w;
    struct err e = ERR_INIT;
    capbuf_init(&frame, 4096);
    ck_assert_int_eq(proto_encode(&schema_msg_f_job, &msg, &frame, &e), 0);
    waiting_init(&w, NULL, NULL, callbacks, NULL);
    moving = true;
    ck_assert_int_eq(waiting_offer(&w, &j, bytes_of(frame.data, frame.size), &msg, &e), 0);
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
    capbuf_finish(&frame);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("jobs that pause");
    TCase *t = tcase_create("waiting");
    tcase_add_test(t, what_changed_during_a_pause_may_have_helped);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int bad = srunner_ntests_failed(r);
    srunner_free(r);
    return bad == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
