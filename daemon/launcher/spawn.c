#include "daemon/launcher/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/journal.h"

#define ENVIRONMENT_MAX 128
#define FD_FIRST        3
#define FD_PARKED       64 /* above the numbers that children get */

/* The environment that children get. A name that ends in '=' is whole; others are prefixes. */
static const char *const PASSED[] = {
    "PATH=",
    "HOME=",
    "LANG=",
    "TMPDIR=",
    "XDG_",
    "POCL_",
    "OCL_",
    "CUDA_",
    "OPENCL_",
    "LD_LIBRARY_PATH=",
    "ASAN_OPTIONS=",
    "UBSAN_OPTIONS=",
    "LSAN_OPTIONS=",
    "TSAN_OPTIONS=",
    "GLIBC_TUNABLES=",
    "GPUD_LOG=",
    "GPUD_LOG_FORMAT=",
    "GPUD_CONFINE",
};

/*
 * Copies of 3 MiB and more do not remain in a processor's own cache, so they bypass it. By default
 * the C library does so only from three quarters of the last level's size on, some 100 MiB on a
 * server. Measured: 64 MiB in pieces of 4 MiB 5.8 GB/s, past the cache 9.7; with
 * 1 MiB instead of 3 a kernel that used what was just copied took longer.
 */
static char copies_past_cache[] = "GLIBC_TUNABLES=glibc.cpu.x86_non_temporal_threshold=0x300000";

static bool passes(const char *variable)
{
    for (size_t i = 0; i < sizeof PASSED / sizeof PASSED[0]; i++) {
        if (strncmp(variable, PASSED[i], strlen(PASSED[i])) == 0) {
            return true;
        }
    }
    return false;
}

static void environment_make(char *ret_env[ENVIRONMENT_MAX + 1])
{
    size_t count = 0;
    if (getenv("GLIBC_TUNABLES") == NULL) {
        ret_env[count++] = copies_past_cache;
    }
    for (char **v = environ; *v != NULL && count < ENVIRONMENT_MAX; v++) {
        if (passes(*v)) {
            ret_env[count++] = *v;
        }
    }
    ret_env[count] = NULL;
}

/* Keeps a limit that is already lower. */
static bool limit_set(int resource, uint64_t value)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0) {
        return false;
    }
    limit.rlim_max = value < limit.rlim_max ? value : limit.rlim_max;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit((__rlimit_resource_t)resource, &limit) == 0;
}

#define CPU_GRACE_S 5u

/* At the soft limit a process gets SIGXCPU, and again each second; at the hard limit it is
 * killed. LLVM handles the first signal and goes on. A hard limit that is already lower is kept,
 * because only root could raise it. */
static bool cpu_set(uint64_t seconds)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_CPU, &limit) != 0) {
        return false;
    }
    rlim_t hard = seconds < RLIM_INFINITY - CPU_GRACE_S ? seconds + CPU_GRACE_S : RLIM_INFINITY;
    limit.rlim_max = hard < limit.rlim_max ? hard : limit.rlim_max;
    limit.rlim_cur = limit.rlim_max > CPU_GRACE_S ? limit.rlim_max - CPU_GRACE_S : limit.rlim_max;
    return setrlimit(RLIMIT_CPU, &limit) == 0;
}

/* NPROC is not limited: it counts all processes of the user, so it would limit others. The
 * launcher kills the process group instead. */
static bool limits_set(const struct spawn_limits *l)
{
    bool ok = limit_set(RLIMIT_CORE, 0);
    errno = 0;
    ok = ok && (l->nice == 0 || nice(l->nice) != -1 || errno == 0);
    ok = ok && (l->cpu_s == 0 || cpu_set(l->cpu_s));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    /* the sanitizers reserve address space that they never use */
    ok = ok && (l->memory == 0 || limit_set(RLIMIT_AS, l->memory));
#endif
    ok = ok && (l->file == 0 || limit_set(RLIMIT_FSIZE, l->file));
    return ok && (l->files == 0 || limit_set(RLIMIT_NOFILE, l->files));
}

#define OOM_SCORE "500" /* counts as much as half of the memory */

/* When memory runs out, the kernel ends workers and compilers, which are replaced, before the front
 * and the launcher. A process may raise its own score; a higher inherited one stays. */
static void make_first_victim(void)
{
    char now[16] = "";
    int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    if (read(fd, now, sizeof now - 1) > 0 && strtol(now, NULL, 10) < strtol(OOM_SCORE, NULL, 10)) {
        ssize_t ignored = write(fd, OOM_SCORE, strlen(OOM_SCORE));
        (void)ignored;
    }
    (void)close(fd);
}

/* Gives the child a journal stream of its own, because on the launcher's stderr its lines would
 * seem to be the launcher's. Without a journal it writes to that stderr all the same. */
static void output_place(const struct spawn *s)
{
    int fd = s->journal != NULL ? journal_stream(s->journal, s->name, false) : -1;
    if (fd >= 0) {
        (void)dup2(fd, STDERR_FILENO);
    }
}

/* Moves the descriptors above all target numbers first, then each to its own. */
static bool descriptors_place(const struct spawn *s, int *ret_program, int *status_fd)
{
    int parked[SPAWN_FDS_MAX];
    *ret_program = fcntl(s->program, F_DUPFD_CLOEXEC, FD_PARKED);
    *status_fd = fcntl(*status_fd, F_DUPFD_CLOEXEC, FD_PARKED);
    if (*ret_program < 0 || *status_fd < 0) {
        return false;
    }
    for (int i = 0; i < s->fd_count; i++) {
        parked[i] = fcntl(s->fd[i], F_DUPFD_CLOEXEC, FD_PARKED);
        if (parked[i] < 0) {
            return false;
        }
    }
    for (int i = 0; i < s->fd_count; i++) {
        if (dup2(parked[i], FD_FIRST + i) < 0) {
            return false;
        }
    }
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    return null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0 &&
           close_range((unsigned)(FD_FIRST + s->fd_count), ~0U, CLOSE_RANGE_CLOEXEC) == 0;
}

static void signals_restore(void)
{
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGHUP, SIG_DFL);
    (void)signal(SIGINT, SIG_DFL);
}

/* Runs in the child: only calls that are safe after fork. Does not return. */
static void become(const struct spawn *s, char *const *argv, char *const *env, pid_t parent,
                   int status_fd)
{
    int program = -1;
    make_first_victim(); /* another user may not open that file */
    /* a change of user clears the parent-death signal, so the signal is set afterwards */
    bool ok =
        setpgid(0, 0) == 0 && identity_become(s->identity) && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
    if (getppid() != parent) {
        _exit(127); /* the parent ended before the signal was set */
    }
    if (ok) { /* otherwise errno has the reason */
        output_place(s);
    }
    ok = ok && descriptors_place(s, &program, &status_fd) && limits_set(&s->limits);
    if (ok) {
        signals_restore();
        (void)fexecve(program, argv, env);
    }
    int reason = errno;
    ssize_t ignored = write(status_fd, &reason, sizeof reason);
    (void)ignored;
    _exit(127);
}

/* Returns 0 if the pipe was closed empty: the program runs. */
static int exec_result(int fd)
{
    int reason = 0;
    ssize_t n;
    do {
        n = read(fd, &reason, sizeof reason);
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof reason ? reason : 0;
}

int spawn_process(const struct spawn *s, pid_t *ret_pid, struct err *e)
{
    char *env[ENVIRONMENT_MAX + 1];
    char *argv[SPAWN_ARGS_MAX + 2];
    size_t count = 0;
    environment_make(env);
    argv[count++] = (char *)(uintptr_t)s->name;
    for (char *const *arg = s->argv; *arg != NULL && count <= SPAWN_ARGS_MAX; arg++) {
        argv[count++] = *arg;
    }
    argv[count] = NULL;
    int status[2];
    if (pipe2(status, O_CLOEXEC) != 0) {
        return err_errno(e, ERR_IO, "pipe");
    }
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        become(s, argv, env, parent, status[1]);
    }
    int fork_errno = errno;
    (void)close(status[1]);
    int reason = pid > 0 ? exec_result(status[0]) : fork_errno;
    (void)close(status[0]);
    if (reason != 0) {
        if (pid > 0) {
            (void)waitpid(pid, NULL, 0); /* the child ends at once */
        }
        errno = reason;
        return err_errno(e, ERR_IO, "starting %s", s->name);
    }
    *ret_pid = pid;
    return 0;
}
