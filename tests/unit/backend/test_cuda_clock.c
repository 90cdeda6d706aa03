/* The device's time on the host's clock, with both clocks made up: --wrap=clock_now_ns. */
#include <check.h>
#include <stdlib.h>

#include "common/clock.h"
#include "daemon/backend/cuda/driver/clock.h"

uint64_t __wrap_clock_now_ns(void);

#define END_NS (4 * 3600 * NS_PER_S)

/* The device counts from another moment, and faster or slower. */
static struct {
    uint64_t host_ns;
    double rate;
    bool stuck;       /* recorded events do not complete */
    uint64_t late_ns; /* the host sees what passed later */
} now;

struct CUevent_st {
    double device_ns;
    bool passed;
};

uint64_t __wrap_clock_now_ns(void)
{
    return now.host_ns;
}

static CUresult stream_create(CUstream *ret, unsigned flags, int priority)
{
    (void)flags;
    (void)priority;
    *ret = NULL;
    return CUDA_SUCCESS;
}

static CUresult event_create(CUevent *ret, unsigned flags)
{
    (void)flags;
    *ret = calloc(1, sizeof **ret);
    return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult event_destroy(CUevent event)
{
    free(event);
    return CUDA_SUCCESS;
}

static CUresult event_record(CUevent event, CUstream stream)
{
    (void)stream;
    event->device_ns = (double)now.host_ns * now.rate;
    event->passed = !now.stuck;
    return CUDA_SUCCESS;
}

static CUresult event_query(CUevent event)
{
    return event->passed ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static CUresult event_synchronize(CUevent event)
{
    now.host_ns += now.late_ns;
    return event_query(event);
}

static CUresult event_elapsed(float *ret_ms, CUevent from, CUevent to)
{
    *ret_ms = (float)((to->device_ns - from->device_ns) / 1e6);
    return from->passed && to->passed ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static const struct cuda_driver driver = {.StreamCreateWithPriority = stream_create,
                                          .EventCreate = event_create,
                                          .EventDestroy = event_destroy,
                                          .EventRecord = event_record,
                                          .EventQuery = event_query,
                                          .EventSynchronize = event_synchronize,
                                          .EventElapsedTime = event_elapsed};

static int64_t error_ns(struct cuda_clock *c)
{
    struct CUevent_st event;
    event_record(&event, NULL);
    event.passed = true;
    return (int64_t)(cuda_clock_of(c, &event) - now.host_ns);
}

static const double rates[] = {1.0, 1.0 + 1e-4, 1.0 - 1e-4};

/* Hours of markers each 100 ms; 1e-4 is ten times what clocks do, and makes 100 us in a second. */
START_TEST(follows_a_clock_that_drifts)
{
    struct cuda_clock c;
    now.host_ns = 5 * NS_PER_S;
    now.rate = rates[_i];
    now.stuck = false;
    ck_assert_int_eq(cuda_clock_init(&c, &driver, NULL), 0);
    while (now.host_ns < END_NS) {
        now.host_ns += 100 * NS_PER_MS;
        cuda_clock_tick(&c);
        cuda_clock_tick(&c);
        int64_t error = error_ns(&c);
        ck_assert_msg(llabs(error) < 150 * (int64_t)NS_PER_US, "%lld ns", (long long)error);
    }
    cuda_clock_finish(&c);
}
END_TEST

/* An hour without work, then at once a marker. */
START_TEST(an_idle_hour_is_made_up_for)
{
    struct cuda_clock c;
    now.host_ns = 5 * NS_PER_S;
    now.rate = rates[_i];
    now.stuck = false;
    ck_assert_int_eq(cuda_clock_init(&c, &driver, NULL), 0);
    now.host_ns += 3600 * NS_PER_S;
    cuda_clock_tick(&c);
    cuda_clock_tick(&c);
    ck_assert(llabs(error_ns(&c)) < (int64_t)NS_PER_US);
    cuda_clock_finish(&c);
}
END_TEST

/* While an anchor has not passed the one before it serves. */
START_TEST(a_busy_device_delays_the_anchor)
{
    struct cuda_clock c;
    now.host_ns = 5 * NS_PER_S;
    now.rate = 1.0;
    now.stuck = false;
    ck_assert_int_eq(cuda_clock_init(&c, &driver, NULL), 0);
    now.stuck = true;
    for (int i = 0; i < 8; i++) {
        now.host_ns += NS_PER_S;
        cuda_clock_tick(&c);
        ck_assert(llabs(error_ns(&c)) < 2 * (int64_t)NS_PER_US);
    }
    now.stuck = false;
    c.next->passed = true;
    cuda_clock_tick(&c);
    ck_assert(!c.pending || c.next_ns == now.host_ns);
    ck_assert(llabs(error_ns(&c)) < 2 * (int64_t)NS_PER_US);
    cuda_clock_finish(&c);
}
END_TEST

/* A host that sees the first events late takes them for later than they were, but not the events
 * after that. */
START_TEST(nothing_passed_in_the_future)
{
    struct cuda_clock c;
    now.host_ns = 5 * NS_PER_S;
    now.rate = 1.0;
    now.late_ns = 8 * NS_PER_MS;
    ck_assert_int_eq(cuda_clock_init(&c, &driver, NULL), 0);
    ck_assert_int_eq(error_ns(&c), 0);
    now.host_ns += 10 * NS_PER_MS;
    ck_assert(llabs(error_ns(&c)) < (int64_t)NS_PER_US);
    cuda_clock_finish(&c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda clock");
    TCase *t = tcase_create("clock");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, follows_a_clock_that_drifts, 0, 3);
    tcase_add_loop_test(t, an_idle_hour_is_made_up_for, 0, 3);
    tcase_add_test(t, nothing_passed_in_the_future);
    tcase_add_test(t, a_busy_device_delays_the_anchor);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
