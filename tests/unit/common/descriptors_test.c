#include "common/descriptors.h"

#include <sys/resource.h>
#include <unistd.h>

#include "tests/unit/common/suite.h"

#define HARD 100u
#define KEPT (HARD / 4)

static int taken[HARD];
static unsigned taken_count;

/* How many more there were. */
static unsigned take_all(void)
{
    unsigned before = taken_count;
    int fd;
    while (taken_count < HARD && (fd = dup(STDERR_FILENO)) >= 0) {
        taken[taken_count++] = fd;
    }
    return taken_count - before;
}

static void give_back(void)
{
    while (taken_count > 0) {
        (void)close(taken[--taken_count]);
    }
}

/* Who takes all there are leaves a reserve, which can be had and is kept back again. */
START_TEST(a_reserve_is_kept_back)
{
    struct rlimit limit = {.rlim_cur = HARD, .rlim_max = HARD};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    descriptors_init();
    ck_assert(descriptors_left());
    ck_assert_uint_gt(take_all(), 0);
    ck_assert(!descriptors_left());
    descriptors_reserve_open();
    ck_assert(descriptors_left());
    int fd = dup(STDERR_FILENO);
    ck_assert_int_ge(fd, (int)(HARD - KEPT));
    descriptors_reserve_close();
    ck_assert(!descriptors_left());
    ck_assert_int_eq(close(fd), 0);
    descriptors_reserve_open();
    ck_assert_uint_eq(take_all(), KEPT);
    descriptors_reserve_close();
    give_back();
}
END_TEST

/* A low soft limit is raised to what the hard one allows. */
START_TEST(all_others_are_had)
{
    struct rlimit limit = {.rlim_cur = 20, .rlim_max = HARD};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    descriptors_init();
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_eq(limit.rlim_cur, HARD - KEPT);
    ck_assert_uint_eq(limit.rlim_max, HARD);
}
END_TEST

SUITE_MAIN("descriptors", a_reserve_is_kept_back, all_others_are_had)
