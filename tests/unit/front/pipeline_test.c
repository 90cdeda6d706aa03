/* The loop of the front (daemon/front/pipeline.c): what counts as time for which the process stood
 * still, and when the front is up. */
#include <check.h>

#include "daemon/front/devices/monitor.h"
#include "daemon/front/model/sessions.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/pipeline_int.h"
#include "daemon/front/requests/session_end.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static struct fake *k;
static uv_loop_t loop;

/* A turn of the loop, in which the timer is set anew, and has not fired before. */
static void turn(uint64_t wake_ns)
{
    k->f.wake_ns = wake_ns;
    (void)uv_timer_stop(&k->f.timer); /* it counts real time */
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_uint_eq(k->f.armed_ns, k->f.wake_ns);
}

static void begin(void)
{
    k = fake_create();
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    k->f.loop = &loop;
    pipeline_init(&k->f);
    turn(NS_NEVER);
}

static void close_one(uv_handle_t *handle, void *data)
{
    (void)data;
    uv_close(handle, NULL);
}

static void end(void)
{
    uv_walk(&loop, close_one, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    fake_destroy(k);
}

/* FAULT other: the machine is paused while a job runs, for longer than the rest of its time limit
 * required: the pause does not count against the limit, and all of it is known if there are two
 * defence: `front/model/wake.c`: wake_still_ns
 * mutants: still-since, away-twice, away-sum */
START_TEST(each_standstill_counts)
{
    begin();
    turn(fake_now() + 10 * NS_PER_MS);
    fake_pass(5 * NS_PER_S);
    turn(fake_now() - 1);
    fake_pass(8 * NS_PER_S);
    turn(fake_now() - 1);
    ck_assert_uint_eq(k->f.away_ns, 13 * NS_PER_S);
    end();
}
END_TEST

/* A turn that looked at the clock shows that the loop ran then; one behind the standstill does not.
 */
START_TEST(it_began_behind_the_last_turn)
{
    begin();
    turn(fake_now() + 10 * NS_PER_S);
    fake_pass(4 * NS_PER_S);
    turn_begin(&k->f);
    (void)turn_now(&k->f);
    turn_end(&k->f);
    fake_pass(20 * NS_PER_S);
    turn_begin(&k->f);
    (void)turn_now(&k->f);
    turn_end(&k->f);
    ck_assert_uint_eq(wake_still_ns(&k->f, fake_now()), 20 * NS_PER_S);
    turn(fake_now() - 1);
    ck_assert_uint_eq(k->f.away_ns, 20 * NS_PER_S);
    ck_assert_uint_eq(wake_still_ns(&k->f, fake_now()), 0);
    end();
}
END_TEST

/* A loop that sleeps as long as it meant to, or for ever as nothing is due, has not stood still. */
START_TEST(sleep_is_no_standstill)
{
    begin();
    k->f.awake_ns = fake_now(); /* as the timer's work leaves it, which asks for no more */
    k->f.armed_ns = NS_NEVER;
    turn(NS_NEVER);
    fake_pass(600 * NS_PER_S);
    turn(fake_now() + 20 * NS_PER_S);
    fake_pass(19 * NS_PER_S);
    turn(fake_now() + NS_PER_S / 2);
    ck_assert_uint_eq(k->f.away_ns, 0);
    end();
}
END_TEST

/* FAULT other: the machine is paused while gpud waits for the reports of workers from before
 * required: they have as long as without the pause, and are kept
 * defence: `front/pipeline_start.c`: pipeline_adopts_until
 * mutants: adoption-still */
START_TEST(a_standstill_takes_no_time_from_workers_that_are_taken_over)
{
    begin();
    k->f.listed = false;
    uint64_t began = fake_now();
    uint64_t until = pipeline_adopts_until(&k->f, began);
    ck_assert_uint_gt(until, began);
    turn(fake_now() + 10 * NS_PER_MS);
    fake_pass(60 * NS_PER_S);
    turn(fake_now() - 1);
    ck_assert_uint_eq(pipeline_adopts_until(&k->f, began), until + 60 * NS_PER_S);
    fake_pass(until - began);
    ck_assert_uint_eq(pipeline_adopts_until(&k->f, began), 0);
    end();
}
END_TEST

static struct session *lingering(uint8_t name, uint64_t ms)
{
    const uint8_t id[PROTO_CLIENT_ID_BYTES] = {name};
    const struct session_key key = session_key(id, 0);
    struct session *s = sessions_obtain(&k->f, &key, k->tenant);
    ck_assert_ptr_nonnull(s);
    s->lingers_until_ns = fake_now() + ms * NS_PER_MS;
    session_set_timer(&k->f, s);
    return s;
}

/* FAULT other: the machine is paused for longer than sessions linger whose connections are broken
 * required: their clients can come back for as long as before the pause, at most for the whole time
 * defence: `front/requests/session_end.c`: sessions_stood_still
 * mutants: linger-still */
START_TEST(sessions_linger_longer_by_a_standstill)
{
    begin();
    k->f.config.session_linger_ms = 10000;
    struct session *early = lingering(1, 6000);
    fake_pass(30 * NS_PER_S);
    struct session *late = lingering(2, 10000); /* its end was read behind the standstill */
    sessions_stood_still(&k->f, fake_now(), 30 * NS_PER_S);
    ck_assert_uint_eq(early->lingers_until_ns, fake_now() + 6 * NS_PER_S);
    ck_assert_uint_eq(late->lingers_until_ns, fake_now() + 10 * NS_PER_S);
    session_end(&k->f, early);
    session_end(&k->f, late);
    end();
}
END_TEST

/* Device 0 is drained. The worker of device 1 has ended, and gets a successor: jobs would find no
 * device before that. Once that is in doubt, nothing is waited for. */
START_TEST(drained_and_restarting_is_not_up)
{
    begin();
    ck_assert_int_eq(monitor_create(&k->f.monitor, NULL), 0);
    struct device *d = &k->device[1];
    k->f.config.min_devices = 1;
    k->device[0].drain.state = DRAIN_HOLDS;
    d->state = DEVICE_WAITING;
    d->failures = 1;
    k->f.hooks.device_changed(&k->f, d);
    ck_assert(!k->f.ready_reported);
    d->failures = 2;
    k->f.hooks.device_changed(&k->f, d);
    ck_assert(k->f.ready_reported);
    k->device[0].drain.state = DRAIN_NONE;
    monitor_destroy(k->f.monitor);
    k->f.monitor = NULL;
    end();
}
END_TEST

SUITE_MAIN("pipeline", each_standstill_counts, it_began_behind_the_last_turn,
           sleep_is_no_standstill, a_standstill_takes_no_time_from_workers_that_are_taken_over,
           sessions_linger_longer_by_a_standstill, drained_and_restarting_is_not_up)
