#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpuctl/ctl.h"

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

int cmd_config_check(struct ctl *ctl, struct options *options, struct ctl_err *e)
{
    const char *word[1] = {NULL};
    int rc = ctl_words(ctl, options, 0, 1, word, e);
    if (rc != 0) {
        return rc;
    }
    pid_t pid = fork();
    if (pid < 0) {
        return ctl_err_errno(e, "fork");
    }
    if (pid == 0) {
        exec_daemon(word[0]);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return ctl_err_errno(e, "waiting for gpud");
        }
    }
    if (!WIFEXITED(status)) {
        return ctl_err_set(e, GPUD_ERR_INTERNAL, "gpud ended by signal %d", WTERMSIG(status));
    }
    return WEXITSTATUS(status) == 0 ? 0 : EXIT_FAILED;
}
