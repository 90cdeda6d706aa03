/* A thread of thread_start gets no signals, and its starter keeps those that it had. */
#include "common/thread.h"

#include <signal.h>

#include "tests/unit/common/suite.h"

#define STACK ((size_t)128 * 1024)

static bool blocks(int number)
{
    sigset_t now;
    ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, NULL, &now), 0);
    return sigismember(&now, number) == 1;
}

static void *run(void *data)
{
    size_t *ret_stack = data;
    pthread_attr_t attr;
    ck_assert(blocks(SIGTERM) && blocks(SIGINT) && blocks(SIGUSR1));
    ck_assert_int_eq(pthread_getattr_np(pthread_self(), &attr), 0);
    ck_assert_int_eq(pthread_attr_getstacksize(&attr, ret_stack), 0);
    ck_assert_int_eq(pthread_attr_destroy(&attr), 0);
    return data;
}

START_TEST(a_thread_gets_no_signals)
{
    pthread_t thread;
    size_t stack = 0;
    void *result = NULL;
    ck_assert(thread_start(STACK, run, &stack, &thread));
    ck_assert_int_eq(pthread_join(thread, &result), 0);
    ck_assert_ptr_eq(result, &stack);
    ck_assert_uint_ge(stack, STACK); /* a sanitizer adds what it needs */
    ck_assert_uint_lt(stack, 2 * 1024 * 1024);
    ck_assert(!blocks(SIGTERM) && !blocks(SIGINT) && !blocks(SIGUSR1));
}
END_TEST

START_TEST(there_is_no_room_for_a_thread)
{
    pthread_t thread;
    ck_assert(!thread_start(SIZE_MAX / 4096 * 4096 / 2, run, NULL, &thread));
    ck_assert(!blocks(SIGTERM));
}
END_TEST

SUITE_MAIN("thread", a_thread_gets_no_signals, there_is_no_room_for_a_thread)
