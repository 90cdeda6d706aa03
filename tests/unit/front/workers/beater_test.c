/* Reading what a thread does: threads of this process, and a stopped child. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/front/workers/beater.h"
#include "tests/unit/common/suite.h"

#define STACK 65536

static struct device device;
static struct thread_look look;
static int begun[2], go[2]; /* pipes */

static int open_state(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    return fd;
}

/* Waits in the kernel as for a disk: until its child, which shares its memory, has ended. */
static int child(void *data)
{
    char byte = 0;
    (void)data;
    return read(go[0], &byte, 1) == 1 ? 0 : 1;
}

static void *in_disk_wait(void *data)
{
    static _Alignas(16) char stack[STACK];
    int fd = open_state("/proc/thread-self/stat");
    (void)data;
    ck_assert_int_eq(write(begun[1], &fd, sizeof fd), sizeof fd);
    pid_t pid = clone(child, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    return NULL;
}

static void *asleep(void *data)
{
    char byte = 0;
    int fd = open_state("/proc/thread-self/stat");
    (void)data;
    ck_assert_int_eq(write(begun[1], &fd, sizeof fd), sizeof fd);
    ck_assert_int_eq(read(go[0], &byte, 1), 1);
    return NULL;
}

static void look_at(int fd, pid_t pid)
{
    device.beater = beater_create(fd, pid);
    ck_assert_ptr_nonnull(device.beater);
}

static bool reaches(char state)
{
    ck_assert(beater_look(&device, &look));
    return look.state == state;
}

START_TEST(threads_and_what_they_lack)
{
    static void *(*const work[])(void *) = {asleep, in_disk_wait};
    static const char states[] = {'S', 'D'};
    static const enum thread_lack lacks[] = {LACKS_NOTHING, LACKS_DISK};
    pthread_t thread;
    int fd = -1;
    ck_assert(pipe(begun) == 0 && pipe(go) == 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, work[_i], NULL), 0);
    ck_assert_int_eq(read(begun[0], &fd, sizeof fd), sizeof fd);
    look_at(fd, getpid());
    while (!reaches(states[_i])) {
        (void)sched_yield();
    }
    ck_assert_int_eq(look.lack, lacks[_i]);
    ck_assert_int_eq(write(go[1], "", 1), 1);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    while (beater_look(&device, &look)) { /* the kernel takes it away a little later */
        (void)sched_yield();
    }
    beater_destroy(device.beater);
}
END_TEST

START_TEST(who_runs_lacks_a_processor_at_most)
{
    look_at(open_state("/proc/thread-self/stat"), getpid());
    do {
        ck_assert(beater_look(&device, &look));
        ck_assert_int_eq(look.state, 'R');
        ck_assert_int_eq(look.lack, LACKS_PROCESSOR);
    } while (look.ran_ns == 0);
    beater_destroy(device.beater);
}
END_TEST

START_TEST(who_is_stopped_lacks_nothing)
{
    char path[64];
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        (void)raise(SIGSTOP);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, (int)pid);
    look_at(open_state(path), pid);
    ck_assert(reaches('T'));
    ck_assert_int_eq(look.lack, LACKS_NOTHING);
    ck_assert(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
    ck_assert(!beater_look(&device, &look));
    beater_destroy(device.beater);
}
END_TEST

/* What is refused is closed all the same. */
static void refused(int fd, pid_t pid)
{
    ck_assert_int_ge(fd, 0);
    ck_assert_ptr_null(beater_create(fd, pid));
    ck_assert_int_lt(fcntl(fd, F_GETFD), 0);
}

START_TEST(other_files_are_refused)
{
    int end[2];
    ck_assert_int_eq(pipe(end), 0);
    refused(end[0], getpid());
    refused(memfd_create("/1/task/1/stat", MFD_CLOEXEC), getpid());
    refused(open_state("/proc/self/stat"), getpid());
    refused(open_state("/proc/self/maps"), getpid());
    refused(open_state("/proc/thread-self/maps"), getpid());
    refused(open_state("/proc/thread-self/stat"), getppid());
    ck_assert_ptr_null(beater_create(-1, getpid()));
    device.beater = NULL;
    ck_assert(!beater_look(&device, &look));
    beater_destroy(NULL);
}
END_TEST

START_TEST(lines)
{
    static const char name[] = "7 (a) D 1 (b) R 1 2 3 4 5 6 7 8 9 10 250 17 0\n";
    ck_assert(beater_parse(name, 10, &look));
    ck_assert_int_eq(look.state, 'R');
    ck_assert_uint_eq(look.ran_ns, 2670);
    ck_assert(!beater_parse("7 (a) R 1 2 3", 10, &look));
    ck_assert(!beater_parse("", 10, &look));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("beater");
    TCase *tcase = tcase_create("beater");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, threads_and_what_they_lack, 0, 2);
    tcase_add_test(tcase, who_runs_lacks_a_processor_at_most);
    tcase_add_test(tcase, who_is_stopped_lacks_nothing);
    tcase_add_test(tcase, other_files_are_refused);
    tcase_add_test(tcase, lines);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
