/* Wake-ups of the loop by other threads: none is lost, and those that come together are one. */
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "daemon/worker/run/pump.h"

#define THREADS 4u
#define EACH    20000u

struct asked {
    struct pump pump;
    uv_loop_t loop;
    atomic_uint made; /* what was told of */
    unsigned seen, asks;
    unsigned plain, plain_seen; /* what another thread wrote before it told */
    unsigned stop_at;
    bool tell; /* again, while it asks */
};

/* Nothing is ever in flight for it, so that no timer asks. */
static bool on_ask(void *data)
{
    struct asked *a = data;
    a->asks++;
    a->plain_seen = a->plain;
    a->seen = atomic_load(&a->made);
    if (a->tell) {
        a->tell = false;
        atomic_fetch_add(&a->made, 1);
        pump_wake(&a->pump);
    }
    if (a->seen >= a->stop_at) {
        uv_stop(&a->loop);
    }
    return false;
}

static void begin(struct asked *a, unsigned stop_at)
{
    struct err e = ERR_INIT;
    *a = (struct asked){.stop_at = stop_at};
    ck_assert_int_eq(uv_loop_init(&a->loop), 0);
    ck_assert_msg(pump_init(&a->pump, &a->loop, &e) == 0, "%s", e.text);
    pump_start(&a->pump, true, on_ask, a);
}

static void end(struct asked *a)
{
    pump_stop(&a->pump);
    pump_finish(&a->pump);
    pump_wake(&a->pump); /* a driver's thread that is late */
    (void)uv_run(&a->loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&a->loop), 0);
}

static void wake(struct asked *a)
{
    atomic_fetch_add(&a->made, 1);
    pump_wake(&a->pump);
}

START_TEST(signals_together_are_asked_for_once)
{
    struct asked a;
    begin(&a, 11);
    wake(&a); /* the first of all may count twice */
    (void)uv_run(&a.loop, UV_RUN_ONCE);
    (void)uv_run(&a.loop, UV_RUN_NOWAIT);
    unsigned before = a.asks;
    for (unsigned i = 0; i < 10; i++) {
        wake(&a);
    }
    (void)uv_run(&a.loop, UV_RUN_DEFAULT);
    (void)uv_run(&a.loop, UV_RUN_NOWAIT);
    ck_assert_uint_eq(a.seen, 11);
    ck_assert_uint_eq(a.asks, before + 1);
    end(&a);
}
END_TEST

START_TEST(signals_while_it_asks_make_it_ask_again)
{
    struct asked a;
    begin(&a, 2);
    a.tell = true;
    wake(&a);
    (void)uv_run(&a.loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(a.seen, 2);
    ck_assert_uint_eq(a.asks, 2);
    end(&a);
}
END_TEST

static void *wake_often(void *data)
{
    for (unsigned i = 0; i < EACH; i++) {
        wake(data);
    }
    return NULL;
}

/* The loop ends with the last of them only: one that was lost leaves it waiting. */
START_TEST(none_is_lost)
{
    struct asked a;
    pthread_t thread[THREADS];
    begin(&a, THREADS * EACH);
    for (unsigned i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&thread[i], NULL, wake_often, &a), 0);
    }
    (void)uv_run(&a.loop, UV_RUN_DEFAULT);
    for (unsigned i = 0; i < THREADS; i++) {
        (void)pthread_join(thread[i], NULL);
    }
    ck_assert_uint_eq(a.seen, THREADS * EACH);
    end(&a);
}
END_TEST

struct teller {
    struct asked *asked;
    atomic_bool told; /* says so, and orders nothing */
};

static void *tell(void *data)
{
    struct teller *t = data;
    t->asked->plain = 1;
    pump_wake(&t->asked->pump);
    atomic_store_explicit(&t->told, true, memory_order_relaxed);
    return NULL;
}

/* Who finds that it was told already writes nothing: what it did before is seen all the same. */
START_TEST(writes_before_a_signal_are_seen)
{
    struct asked a;
    struct teller t = {.asked = &a};
    pthread_t thread;
    begin(&a, 1);
    wake(&a);
    ck_assert_int_eq(pthread_create(&thread, NULL, tell, &t), 0);
    while (!atomic_load_explicit(&t.told, memory_order_relaxed)) {
        (void)sched_yield();
    }
    (void)uv_run(&a.loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(a.plain_seen, 1);
    (void)pthread_join(thread, NULL);
    end(&a);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("worker_pump");
    TCase *t = tcase_create("pump");
    tcase_add_test(t, signals_together_are_asked_for_once);
    tcase_add_test(t, signals_while_it_asks_make_it_ask_again);
    tcase_add_test(t, none_is_lost);
    tcase_add_test(t, writes_before_a_signal_are_seen);
    tcase_set_timeout(t, 120);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
