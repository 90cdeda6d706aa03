#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpuctl/ctl/ctl.h"

int cmd_config_show(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    int rc = ctl_words(ctl, options, 0, 0, NULL, e);
    return rc == 0 ? ctl_show(ctl, "config", NULL, e) : rc;
}

/* Only the daemon knows its settings, so it checks the file: the one beside gpuctl, or in PATH. */
static void exec_daemon(const char *file)
{
    char beside[4096];
    ssize_t size = readlink("/proc/self/exe", beside, sizeof beside - sizeof "gpud");
    const char *args[] = {"gpud", "--check-config", file != NULL ? "--config" : NULL, file, NULL};
    /* execv takes the strings without changing them. */
    char *argv[5];
    memcpy(argv, args, sizeof argv);
    if (size > 0) {
        beside[size] = '\0';
        char *slash = strrchr(beside, '/');
        if (slash != NULL) {
            memcpy(slash + 1, "gpud", sizeof "gpud");
            execv(beside, argv);
        }
    }
    execvp("gpud", argv);
    fprintf(stderr, "gpuctl: config check: gpud: %s\n", strerror(errno));
    _exit(EXIT_FAILED);
}

/* Runs `gpud --check-config`. output: >= 0 takes what it prints, -1: it stays gpuctl's own. */
static int start_daemon(const char *file, int output, pid_t *ret_pid, struct ctl_err *e)
{
    pid_t pid = fork();
    if (pid < 0) {
        return ctl_err_errno(e, "fork");
    }
    if (pid == 0) {
        if (output >= 0 && (dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0)) {
            _exit(EXIT_FAILED);
        }
        exec_daemon(file);
    }
    *ret_pid = pid;
    return 0;
}

static int wait_daemon(pid_t pid, bool *ret_good, struct ctl_err *e)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return ctl_err_errno(e, "waiting for gpud");
        }
    }
    if (!WIFEXITED(status)) {
        return ctl_err_set(e, GPUD_ERR_INTERNAL, "gpud ended by signal %d", WTERMSIG(status));
    }
    *ret_good = WEXITSTATUS(status) == 0;
    return 0;
}

/* Reads up to the end; keeps what fits, without the newline at its end. */
static void read_all(int fd, char *out, size_t size)
{
    char rest[256];
    size_t used = 0;
    ssize_t got;
    while ((got = used + 1 < size ? read(fd, out + used, size - used - 1)
                                  : read(fd, rest, sizeof rest)) != 0) {
        if (got < 0 && errno != EINTR) {
            break;
        }
        used += got > 0 && used + 1 < size ? (size_t)got : 0;
    }
    used -= used > 0 && out[used - 1] == '\n';
    out[used] = '\0';
}

/* For programs: the daemon's words in a row of the command's result. */
static int check_told(struct ctl *ctl, const char *file, bool *ret_good, struct ctl_err *e)
{
    char text[4096];
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return ctl_err_errno(e, "pipe");
    }
    pid_t pid = -1;
    int rc = start_daemon(file, fds[1], &pid, e);
    (void)close(fds[1]);
    if (rc == 0) {
        read_all(fds[0], text, sizeof text);
        rc = wait_daemon(pid, ret_good, e);
    }
    (void)close(fds[0]);
    return rc == 0 ? ctl_done(ctl, "config check", *ret_good, text, e) : rc;
}

int cmd_config_check(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    const char *word[1] = {NULL};
    bool good = false;
    pid_t pid = -1;
    int rc = ctl_words(ctl, options, 0, 1, word, e);
    if (rc == 0 && (ctl->format == SHEET_JSON || ctl->format == SHEET_CSV)) {
        rc = check_told(ctl, word[0], &good, e);
    } else if (rc == 0 && (rc = start_daemon(word[0], -1, &pid, e)) == 0) {
        rc = wait_daemon(pid, &good, e);
    }
    return rc != 0 ? rc : good ? EXIT_OK : EXIT_FAILED;
}
