#include "common/descriptors.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/common/suite.h"

#define HARD 100u
#define KEPT (HARD / 4)

static int taken[HARD];
static unsigned taken_count;

/* Opens all descriptors but the reserved ones. Returns their number. */
static unsigned take_all(void)
{
    int fd;
    while (taken_count < HARD && (fd = dup(STDERR_FILENO)) >= 0) {
        if (descriptors_kept(fd)) {
            (void)close(fd);
            break;
        }
        taken[taken_count++] = fd;
    }
    return taken_count;
}

static void give_back(void)
{
    while (taken_count > 0) {
        (void)close(taken[--taken_count]);
    }
}

/* A process that uses all other descriptors leaves the reserved ones, and they can be used. */
START_TEST(a_part_is_kept_back)
{
    struct rlimit limit = {.rlim_cur = HARD, .rlim_max = HARD};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    descriptors_init();
    ck_assert(descriptors_left());
    ck_assert(descriptors_spare());
    ck_assert_uint_gt(take_all(), 0);
    ck_assert(!descriptors_left());
    ck_assert(!descriptors_spare());
    int fd = dup(STDERR_FILENO);
    ck_assert_int_eq(fd, (int)(HARD - KEPT));
    ck_assert(descriptors_kept(fd));
    ck_assert(!descriptors_kept(fd - 1));
    ck_assert_int_eq(close(fd), 0);
    give_back();
    ck_assert(descriptors_left());
    ck_assert(descriptors_spare());
}
END_TEST

/* What stays without a connection leaves room for as many connections. */
START_TEST(there_is_room_for_connections)
{
    struct rlimit limit = {.rlim_cur = HARD, .rlim_max = HARD};
    unsigned room = 0;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    descriptors_init();
    while (descriptors_spare()) {
        ck_assert_uint_lt(taken_count, HARD);
        taken[taken_count++] = dup(STDERR_FILENO);
    }
    ck_assert_int_eq(taken[taken_count - 1], (int)(HARD - 2 * KEPT - 1));
    while (descriptors_left()) {
        ck_assert_uint_lt(taken_count, HARD);
        taken[taken_count++] = dup(STDERR_FILENO);
        room++;
    }
    ck_assert_uint_eq(room, KEPT);
    give_back();
}
END_TEST

/* A low soft limit is raised to what the hard one allows. */
START_TEST(all_are_had)
{
    struct rlimit limit = {.rlim_cur = 20, .rlim_max = HARD};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    descriptors_init();
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_eq(limit.rlim_cur, HARD);
    ck_assert_uint_eq(limit.rlim_max, HARD);
}
END_TEST

/* Its last owner ends soon after. */
START_TEST(what_is_closed_at_once_is_closed)
{
    char byte;
    int none = -1;
    int fd[2];
    ck_assert_int_eq(pipe(fd), 0);
    int number = fd[1];
    descriptor_close_at_once(&fd[1]);
    ck_assert_int_eq(fd[1], -1);
    ck_assert_int_eq(close(number), -1);
    ck_assert_int_eq(read(fd[0], &byte, 1), 0);
    ck_assert_int_eq(close(fd[0]), 0); /* others stay open */
    descriptor_close_at_once(&none);
    ck_assert_int_eq(none, -1);
}
END_TEST

/* A descriptor that is opened next is none of the standard three, whichever of them were closed. */
START_TEST(the_standard_three_are_there)
{
    struct stat st;
    for (int mask = 0; mask < 8; mask++) {
        pid_t pid = fork();
        if (pid == 0) {
            for (int fd = 0; fd < 3; fd++) {
                (void)((mask >> fd & 1) != 0 && close(fd));
            }
            descriptors_standard();
            bool there = fstat(0, &st) == 0 && fstat(1, &st) == 0 && fstat(2, &st) == 0;
            _exit(there && dup(0) > STDERR_FILENO ? 0 : 1);
        }
        int status = -1;
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_msg(status == 0, "closed %d: %d", mask, status);
    }
}
END_TEST

SUITE_MAIN("descriptors", a_part_is_kept_back, there_is_room_for_connections, all_are_had,
           what_is_closed_at_once_is_closed, the_standard_three_are_there)
