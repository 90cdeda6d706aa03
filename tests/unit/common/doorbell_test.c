#include "common/doorbell.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/unit/common/suite.h"

static int make(void)
{
    struct err e = ERR_INIT;
    int fd = -1;
    ck_assert_msg(doorbell_create(&fd, &e) == 0, "%s", e.text);
    ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    return fd;
}

START_TEST(each_ring_is_heard_once)
{
    int bell = make();
    doorbell_ring(bell);
    int set = doorbell_listen(bell);
    ck_assert(doorbell_wait(set, 0)); /* the start */
    for (unsigned i = 0; i < 3; i++) {
        ck_assert(!doorbell_wait(set, 0));
        doorbell_ring(bell);
        doorbell_ring(bell);
        ck_assert(doorbell_wait(set, 0));
    }
    ck_assert(!doorbell_wait(set, 0));
    (void)close(set);
    (void)close(bell);
}
END_TEST

/* O_NONBLOCK is off. Where a ring blocks, the alarm ends the test. */
static void ring_with_count(uint64_t count)
{
    int bell = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    ck_assert_int_eq(write(bell, &count, sizeof count), sizeof count);
    (void)alarm(30);
    doorbell_ring(bell);
    (void)alarm(0);
    (void)close(bell);
}

START_TEST(no_count_makes_a_ring_block)
{
    ring_with_count(0);
    ring_with_count(1);
    ring_with_count(UINT64_MAX - 1);
}
END_TEST

START_TEST(what_is_no_bell_is_no_set)
{
    ck_assert_int_eq(doorbell_listen(-1), -1);
    ck_assert(!doorbell_wait(-1, 0));
}
END_TEST

SUITE_MAIN("doorbell", each_ring_is_heard_once, no_count_makes_a_ring_block,
           what_is_no_bell_is_no_set)
