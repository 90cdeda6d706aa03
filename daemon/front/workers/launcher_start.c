#include "daemon/front/workers/launcher_start.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM_NAME "gpud-launcher"

/* Searches the folder of an installation first: a program beside this one may be of another
 * version. */
static int find_program(char *out, size_t size, struct err *e)
{
    static const char *const folders[] = {GPUD_HELPERS "/", ""};
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0) {
        return err_errno(e, ERR_IO, "finding the path of gpud");
    }
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    for (unsigned i = 0; slash != NULL && i < sizeof folders / sizeof folders[0]; i++) {
        int length =
            snprintf(out, size, "%.*s/%s" PROGRAM_NAME, (int)(slash - self), self, folders[i]);
        if (length > 0 && (size_t)length < size && access(out, X_OK) == 0) {
            return 0;
        }
    }
    return err_set(e, ERR_NOT_FOUND,
                   PROGRAM_NAME
                   " is neither in " GPUD_HELPERS
                   " as seen from %s, nor beside it: reinstall gpud, or start " PROGRAM_NAME
                   " by hand",
                   self);
}

/* Only async-signal-safe calls from here to exec: another thread may have owned any lock at the
 * fork. */
static void become(char *const argv[], int report)
{
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGTTOU, SIG_IGN); /* it may write to a terminal that others have in front */
    int null = open("/dev/null", O_RDONLY);
    if (null >= 0) {
        (void)dup2(null, STDIN_FILENO);
    }
    (void)close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    (void)execv(argv[0], argv);
    int number = errno;
    ssize_t written = write(report, &number, sizeof number);
    _exit(written == (ssize_t)sizeof number ? 127 : 126);
}

/* Forks twice, so that the launcher is not a child of this process and no wait reaps it. A process
 * group of its own keeps Ctrl-C from it. No session of its own: Linux shares processors out among
 * sessions (autogroup), and between two of them a front waited for workers and compilers for 100 ms
 * and more. */
static void detach(char *const argv[], int report)
{
    (void)setpgid(0, 0);
    pid_t pid = fork();
    if (pid == 0) {
        become(argv, report);
    }
    if (pid < 0) {
        int number = errno;
        ssize_t written = write(report, &number, sizeof number);
        (void)written; /* the exit status also reports a failure */
        _exit(125);
    }
    _exit(0);
}

/* The pipe closes without data when the program runs. */
static int outcome(int fd, const char *program, struct err *e)
{
    int number = 0;
    ssize_t n;
    do {
        n = read(fd, &number, sizeof number);
    } while (n < 0 && errno == EINTR);
    if (n == 0) {
        return 0;
    }
    errno = n == (ssize_t)sizeof number ? number : EIO;
    return err_errno(e, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "starting %s", program);
}

int launcher_start(const char *program, const char *runtime_dir, struct err *e)
{
    char path[PATH_MAX];
    if (program != NULL) {
        (void)snprintf(path, sizeof path, "%s", program);
    } else {
        int rc = find_program(path, sizeof path, e);
        if (rc != 0) {
            return rc;
        }
    }
    char option[] = "--runtime-dir";
    char dir[PATH_MAX];
    (void)snprintf(dir, sizeof dir, "%s", runtime_dir);
    char *argv[] = {path, option, dir, NULL};
    int report[2];
    if (pipe2(report, O_CLOEXEC) != 0) {
        return err_errno(e, ERR_IO, "a pipe");
    }
    pid_t pid = fork();
    if (pid == 0) {
        detach(argv, report[1]);
    }
    int number = errno;
    (void)close(report[1]);
    if (pid < 0) {
        (void)close(report[0]);
        errno = number;
        return err_errno(e, ERR_IO, "fork");
    }
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
    int rc = outcome(report[0], path, e);
    (void)close(report[0]);
    return rc;
}
