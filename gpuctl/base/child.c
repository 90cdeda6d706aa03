#include "gpuctl/base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <gpud/gpud.h>

#include "common/clock.h"

#define KILLED_MS 500u /* how long the end of a killed child may take */

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

/* Waits until the descriptor is readable or at its end. end_ns: when to give up; 0: never. */
static bool await_output(int fd, uint64_t end_ns)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n;
    do {
        uint64_t now = clock_now_ns();
        uint64_t left = end_ns > now ? (end_ns - now) / NS_PER_MS + 1 : 0;
        n = poll(&p, 1, end_ns == 0 ? -1 : (int)left);
    } while (n < 0 && errno == EINTR);
    return n > 0;
}

/* Reads to the end of the file. Keeps the bytes that fit, without the last newline. false if the
 * end does not come in time. */
static bool read_all(int fd, char *out, size_t size, uint64_t end_ns)
{
    char rest[256];
    size_t used = 0;
    ssize_t got = -1;
    bool in_time;
    while ((in_time = await_output(fd, end_ns)) &&
           (got = used + 1 < size ? read(fd, out + used, size - used - 1)
                                  : read(fd, rest, sizeof rest)) != 0) {
        if (got < 0 && errno != EINTR) {
            break;
        }
        used += got > 0 && used + 1 < size ? (size_t)got : 0;
    }
    used -= used > 0 && out[used - 1] == '\n';
    out[used] = '\0';
    return in_time;
}

/* Ends a child that took too long. A child that hangs in a driver does not end, so the caller does
 * not wait for it. */
static int give_up(pid_t pid, const struct child *child, struct ctl_err *e)
{
    const struct timespec pause = {.tv_nsec = 10 * (long)NS_PER_MS};
    (void)kill(pid, SIGKILL);
    for (unsigned waited = 0; waited < KILLED_MS && waitpid(pid, NULL, WNOHANG) == 0;
         waited += 10) {
        (void)nanosleep(&pause, NULL);
    }
    return ctl_err_set(e, GPUD_ERR_TIMEOUT, "%s did not end within %llu ms", child->path,
                       (unsigned long long)child->limit_ms);
}

int child_run(const struct child *child, int *ret_status, struct ctl_err *e)
{
    int fds[2] = {-1, -1};
    if (child->output != NULL && pipe2(fds, O_CLOEXEC) != 0) {
        return ctl_err_errno(e, "pipe");
    }
    pid_t pid = -1;
    uint64_t end_ns = child->limit_ms > 0 ? clock_now_ns() + child->limit_ms * NS_PER_MS : 0;
    int rc = start(child, fds[1], &pid, e);
    if (child->output != NULL) {
        (void)close(fds[1]);
        if (rc == 0 && !read_all(fds[0], child->output, child->output_size, end_ns)) {
            rc = give_up(pid, child, e);
        }
        (void)close(fds[0]);
    }
    return rc == 0 ? wait_end(pid, child->path, ret_status, e) : rc;
}
