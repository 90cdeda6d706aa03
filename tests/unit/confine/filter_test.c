/* The filter in this process: each test is a process of its own. Where the kernel or the build has
 * no filter there is nothing to see. */
#include "daemon/confine/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "tests/unit/common/suite.h"

static bool on(bool programs, bool named)
{
    const struct filter f = {.programs = programs, .named = named};
    struct err e = ERR_INIT;
    bool is = false;
    ck_assert_int_eq(filter_install(&f, &is, &e), 0);
    if (!is) {
        (void)fprintf(stderr, "skipped: no filter in this %s\n",
                      filter_built() ? "kernel" : "build");
    }
    return is;
}

static int error_of(long rc)
{
    return rc < 0 ? errno : 0;
}

static void *nothing(void *data)
{
    return data;
}

START_TEST(what_passes)
{
    pthread_t thread;
    char byte = 0;
    int fds[2];
    if (!on(false, _i == 1)) {
        return;
    }
    ck_assert_int_eq(pthread_create(&thread, NULL, nothing, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    ck_assert_int_eq(write(fds[1], "x", 1), 1);
    ck_assert_int_eq(read(fds[0], &byte, 1), 1);
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(page, MAP_FAILED);
    ck_assert_int_eq(munmap(page, 4096), 0);
    ck_assert_int_eq(kill(getpid(), 0), 0);
}
END_TEST

START_TEST(what_does_not)
{
    if (!on(false, _i == 1)) {
        return;
    }
    ck_assert_int_eq(error_of(socket(AF_UNIX, SOCK_STREAM, 0)), EPERM);
    ck_assert_int_eq(error_of(syscall(SYS_fork)), EPERM);
    ck_assert_int_eq(error_of(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)), EPERM);
    ck_assert_int_eq(error_of(syscall(SYS_execve, "/bin/true", NULL, NULL)), EPERM);
    ck_assert_int_eq(error_of(kill(getppid(), 0)), EPERM);
    ck_assert_int_eq(error_of(syscall(SYS_setsid)), EPERM);
    ck_assert_int_eq(error_of(syscall(SYS_seccomp, 0, 0, NULL)), EPERM);
    ck_assert_int_eq(error_of(syscall(1000)), EPERM); /* a call of a kernel to come */
    ck_assert_int_eq(error_of(chmod("/", 0700)), EPERM);
    ck_assert_int_eq(error_of(syscall(SYS_clone3, NULL, 0)), ENOSYS);
}
END_TEST

/* It gets the same filter, and leaves the process group as little as the name spaces. */
START_TEST(programs_where_they_are_needed)
{
    int status = 0;
    if (!on(true, _i == 1)) {
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        bool kept = _i == 1 || (error_of(setpgid(0, 0)) == EPERM && error_of(setsid()) == EPERM &&
                                error_of(socket(AF_INET, SOCK_STREAM, 0)) == EPERM);
        _exit(kept ? 0 : 1);
    }
    ck_assert_int_gt(pid, 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

static sem_t go;

static void *try_socket(void *ret_error)
{
    (void)sem_wait(&go);
    *(int *)ret_error = error_of(socket(AF_UNIX, SOCK_STREAM, 0));
    return NULL;
}

START_TEST(threads_that_run_already_too)
{
    pthread_t thread;
    int error = -1;
    ck_assert_int_eq(sem_init(&go, 0, 0), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, try_socket, &error), 0);
    bool filtered = on(false, _i == 1);
    (void)sem_post(&go);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(error, filtered ? EPERM : 0);
}
END_TEST

/* Of 100 calls of one kind the log has one. */
START_TEST(a_refused_call_is_named_once)
{
    char said[4096];
    int fds[2];
    ck_assert_int_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    int kept = dup(STDERR_FILENO);
    if (!on(false, true)) {
        return;
    }
    ck_assert_int_ge(dup2(fds[1], STDERR_FILENO), 0);
    for (int i = 0; i < 100; i++) {
        (void)socket(AF_UNIX, SOCK_STREAM, 0);
    }
    (void)syscall(SYS_ptrace, 0, 0, 0, 0);
    (void)dup2(kept, STDERR_FILENO);
    ssize_t n = read(fds[0], said, sizeof said - 1);
    ck_assert_int_gt(n, 0);
    said[n] = '\0';
    const char *first = strstr(said, "(socket) was refused");
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_null(strstr(first + 1, "(socket)"));
    ck_assert_ptr_nonnull(strstr(first, "(ptrace) was refused"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("filter");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, what_passes, 0, 2);
    tcase_add_loop_test(all, what_does_not, 0, 2);
    tcase_add_loop_test(all, programs_where_they_are_needed, 0, 2);
    tcase_add_loop_test(all, threads_that_run_already_too, 0, 2);
    tcase_add_test(all, a_refused_call_is_named_once);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
