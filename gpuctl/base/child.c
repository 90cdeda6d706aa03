#include "gpuctl/base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gpud/gpud.h>

extern char **environ;

int child_find(const char *folder, const char *name, char *out, size_t size, struct ctl_err *e)
{
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0) {
        return ctl_err_errno(e, "the folder of gpuctl");
    }
    self[length] = '\0';
    char *slash = strrchr(self, '/');
    int n = snprintf(out, size, "%.*s%s%s/%s", slash != NULL ? (int)(slash - self) : 0, self,
                     folder[0] != '\0' ? "/" : "", folder, name);
    return n > 0 && (size_t)n < size && access(out, X_OK) == 0
               ? 0
               : ctl_err_set(e, GPUD_ERR_NOT_FOUND, "%s is not there", out);
}

static int redirect(posix_spawn_file_actions_t *actions, int from, int to)
{
    return from < 0 ? 0 : posix_spawn_file_actions_adddup2(actions, from, to);
}

/* Starts the child. output: the write end of a pipe; -1: none. */
static int start(const struct child *child, int output, pid_t *ret_pid, struct ctl_err *e)
{
    posix_spawn_file_actions_t actions;
    errno = posix_spawn_file_actions_init(&actions);
    if (errno != 0) {
        return ctl_err_errno(e, "%s", child->path);
    }
    int number = redirect(&actions, output, STDOUT_FILENO);
    if (number == 0 && child->output_errors) {
        number = redirect(&actions, output, STDERR_FILENO);
    }
    if (number == 0) {
        number = redirect(&actions, child->file, CHILD_FILE);
    }
    if (number == 0) { /* posix_spawnp does not change the strings */
        number = posix_spawnp(ret_pid, child->path, &actions, NULL,
                              (char *const *)(uintptr_t)child->argv, environ);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    errno = number;
    return number == 0 ? 0 : ctl_err_errno(e, "%s", child->path);
}

static int wait_end(pid_t pid, const char *path, int *ret_status, struct ctl_err *e)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return ctl_err_errno(e, "waiting for %s", name);
        }
    }
    if (!WIFEXITED(status)) {
        return ctl_err_set(e, GPUD_ERR_INTERNAL, "%s ended by signal %d", name, WTERMSIG(status));
    }
    *ret_status = WEXITSTATUS(status);
    return 0;
}

/* Reads to the end of the file. Keeps the bytes that fit, without the last newline. */
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

int child_run(const struct child *child, int *ret_status, struct ctl_err *e)
{
    int fds[2] = {-1, -1};
    if (child->output != NULL && pipe2(fds, O_CLOEXEC) != 0) {
        return ctl_err_errno(e, "pipe");
    }
    pid_t pid = -1;
    int rc = start(child, fds[1], &pid, e);
    if (child->output != NULL) {
        (void)close(fds[1]);
        if (rc == 0) {
            read_all(fds[0], child->output, child->output_size);
        }
        (void)close(fds[0]);
    }
    return rc == 0 ? wait_end(pid, child->path, ret_status, e) : rc;
}
