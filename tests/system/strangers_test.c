/* Users as in the installed units: front and launcher as one, workers and compilers as another. A
 * kernel that is native code then tries what belongs to the first. Takes root and an x86-64. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/system/native.h"

#define TRUSTED  65533u
#define STRANGER 65520u
#define USERS    2u /* of a pool: those behind STRANGER */

static struct daemon d;
static pid_t launcher;
static struct native n;

/* Can it be shown here? Each test asks. */
static bool possible(void)
{
    return NATIVE && geteuid() == 0;
}

/* ---- processes ------------------------------------------------------------------------------ */

static pid_t start(const char *caps, const char *const *program)
{
    char id[16];
    const char *argv[24] = {"setpriv",        "--reuid",    id,   "--regid",        id,
                            "--clear-groups", "--inh-caps", caps, "--ambient-caps", caps,
                            "--no-new-privs"};
    unsigned count = 11;
    (void)snprintf(id, sizeof id, "%u", TRUSTED);
    for (unsigned i = 0; program[i] != NULL; i++) {
        argv[count++] = program[i];
    }
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        int log = open(d.log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (log < 0 || dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0) {
            _exit(126);
        }
        (void)execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    return pid;
}

static void folder(const char *name, unsigned owner, char *ret_path, size_t size)
{
    (void)snprintf(ret_path, size, "%s/%s", d.dir, name);
    ck_assert_int_eq(mkdir(ret_path, 0700), 0);
    ck_assert_int_eq(chown(ret_path, owner, owner), 0);
}

static void start_front(void)
{
    char cache[DAEMON_PATH + 16];
    (void)snprintf(cache, sizeof cache, "%s/../cache", d.dir);
    const char *const program[] = {
        SYSTEM_BIN "/gpud", "--foreground", "--supervised", "--runtime-dir", d.dir,
        "--cache-dir",      cache,          "--backend",    "opencl",        NULL};
    d.pid = start("-all", program);
    daemon_wait_ready(&d);
}

/* The folders of a pool's users lie in the workers' home, as tmpfiles makes them. */
static void pool_folders(const char *home)
{
    char path[DAEMON_PATH + 32];
    ck_assert_int_eq(chmod(home, 0711), 0);
    for (unsigned i = 0; i < USERS; i++) {
        (void)snprintf(path, sizeof path, "%s/%u", home, i);
        ck_assert_int_eq(mkdir(path, 0700), 0);
        ck_assert_int_eq(chown(path, STRANGER + 1 + i, STRANGER), 0);
    }
}

/* confined: workers confine themselves, too; otherwise the user alone keeps a kernel away. pool:
 * each worker has a user of its own. */
static gpud_client *begin(bool confined, bool pool)
{
    static char base[64];
    char path[DAEMON_PATH + 16];
    char stranger[32];
    daemon_prepare(&d, "--backend", "opencl", NULL);
    (void)strcpy(base, "/tmp/gpud-strangers-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(base));
    ck_assert_int_eq(chmod(base, 0755), 0);
    (void)snprintf(d.dir, sizeof d.dir, "%s", base);
    (void)snprintf(d.log, sizeof d.log, "%s/log", base);
    folder("home", STRANGER, path, sizeof path);
    ck_assert_int_eq(setenv("HOME", path, 1), 0);
    ck_assert_int_eq(unsetenv("POCL_CACHE_DIR"), 0);
    ck_assert_int_eq(setenv("GPUD_CONFINE", confined ? "strict" : "off", 1), 0);
    if (pool) {
        pool_folders(path);
    }
    folder("cache", TRUSTED, path, sizeof path);
    folder("run", TRUSTED, path, sizeof path);
    ck_assert_int_eq(chmod(path, 0750), 0);
    (void)snprintf(d.dir, sizeof d.dir, "%s", path);
    (void)snprintf(d.url, sizeof d.url, "ipc://%s/gpud.sock", d.dir);
    (void)snprintf(stranger, sizeof stranger, "%u:%u", STRANGER, STRANGER);
    const char *const program[] = {SYSTEM_BIN "/gpud-launcher",
                                   "--runtime-dir",
                                   d.dir,
                                   "--supervised",
                                   "--worker-user",
                                   stranger,
                                   "--worker-users",
                                   pool ? "2" : "0",
                                   NULL};
    launcher = start("-all,+setuid,+setgid", program);
    (void)snprintf(path, sizeof path, "%s/launcher.sock", d.dir);
    ck_until(access(path, F_OK) == 0);
    start_front();
    return client_open(d.url);
}

static void end(gpud_client *c)
{
    char base[DAEMON_PATH];
    gpud_close(c);
    ck_assert_int_eq(kill(d.pid, SIGTERM), 0);
    ck_assert_int_eq(process_wait(d.pid), 0);
    ck_assert_int_eq(kill(launcher, SIGTERM), 0);
    ck_assert_int_eq(process_wait(launcher), 0);
    (void)snprintf(base, sizeof base, "%.*s", (int)(strlen(d.dir) - strlen("/run")), d.dir);
    const char *const remove[] = {"rm", "-rf", base, NULL};
    ck_assert_int_eq(run_program(remove, "/dev/null", "/dev/null"), 0);
}

/* ---- what the kernel calls ------------------------------------------------------------------- */

static int64_t call(long number, int64_t a0, int64_t a1, int64_t a2, int64_t mask)
{
    return native_call(&n, number, a0, a1, a2, 0, mask);
}

static int64_t call_connect(const char *name, int type, int64_t *ret_fd)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    *ret_fd = call(SYS_socket, AF_UNIX, type, 0, 0);
    ck_assert_int_ge(*ret_fd, 0);
    (void)snprintf(addr.sun_path, sizeof addr.sun_path, "%s/%s", d.dir, name);
    memcpy(native_data(&n), &addr, sizeof addr);
    return call(SYS_connect, *ret_fd, AT, sizeof addr, 2);
}

static void try_process(pid_t pid)
{
    static const char *const files[] = {"mem", "fd/0", "fd", "environ", "maps"};
    char path[64];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, files[i]);
        ck_assert_msg(native_open(&n, path, O_RDONLY) == -EACCES, "%s: %ld", path,
                      (long)n.words[0]);
        if (i < 2) {
            ck_assert_int_eq(native_open(&n, path, O_RDWR), -EACCES);
        }
    }
    ck_assert_int_eq(call(SYS_kill, pid, 0, 0, 0), -EPERM);
    ck_assert_int_eq(call(SYS_kill, pid, SIGKILL, 0, 0), -EPERM);
    ck_assert_int_eq(call(SYS_ptrace, PTRACE_ATTACH, pid, 0, 0), -EPERM);
    int64_t fd = call(SYS_pidfd_open, pid, 0, 0, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(call(SYS_pidfd_getfd, fd, 0, 0, 0), -EPERM);
    (void)call(SYS_close, fd, 0, 0, 0);
}

/* Nothing of the daemon's lies where everybody may look. */
static void look_at_shared_memory(void)
{
    DIR *dir = opendir("/dev/shm");
    const struct dirent *entry;
    struct stat st;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
            bool closed = S_ISDIR(st.st_mode) && (st.st_mode & 077) == 0;
            ck_assert_msg(st.st_uid != TRUSTED || closed, "/dev/shm/%s", entry->d_name);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

static void try_to_become(unsigned user)
{
    ck_assert_int_eq(call(SYS_setuid, user, 0, 0, 0), -EPERM);
    ck_assert_int_eq(call(SYS_setgid, user, 0, 0, 0), -EPERM);
    ck_assert_int_eq(call(SYS_setresuid, user, user, user, 0), -EPERM);
}

/* FAULT other: a kernel of native code that tries the sockets, memory, descriptors and processes
 *   of front and launcher, or to become another user
 * required: it gets nothing: it runs as a user of its own, without capabilities, and front and
 *   launcher refuse that user
 * defence: `launcher/identity.c`; `launcher/spawn.c`: become; `front/requests/hello.c`:
 *   runs_kernels; `packaging/gpud-launcher.service.in`
 * also: `test_system_strangers`; `launcher_identity_test`; `check_units`
 * mutants: stranger, stranger-caps, stranger-session, stranger-kill, launcher-peer */
START_TEST(a_kernel_gets_nothing_of_the_daemons)
{
    static const char *const sockets[] = {"gpud.sock", "shm.sock", "launcher.sock"};
    if (!possible()) {
        return;
    }
    gpud_client *c = begin(false, false);
    char path[DAEMON_PATH + 32];
    int64_t fd = -1;
    native_load(&n, c, 0);
    ck_assert_int_eq(call(SYS_getuid, 0, 0, 0, 0), STRANGER);
    ck_assert_int_eq(call(SYS_getegid, 0, 0, 0, 0), STRANGER);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(call_connect(sockets[i], SOCK_STREAM, &fd), -EACCES);
        (void)call(SYS_close, fd, 0, 0, 0);
        ck_assert_int_eq(call_connect(sockets[i], SOCK_SEQPACKET, &fd), -EACCES);
        (void)call(SYS_close, fd, 0, 0, 0);
    }
    (void)snprintf(path, sizeof path, "%s/gpud.lock", d.dir);
    ck_assert_int_eq(native_open(&n, path, O_RDWR), -EACCES);
    (void)snprintf(path, sizeof path, "%.*s/cache", (int)(strlen(d.dir) - strlen("/run")), d.dir);
    ck_assert_int_eq(native_open(&n, path, O_RDONLY), -EACCES);
    try_process(d.pid);
    try_process(launcher);
    try_to_become(0);
    try_to_become(TRUSTED);
    look_at_shared_memory();
    end(c);
}
END_TEST

static int open_as_stranger(void *user)
{
    gpud_client *c = NULL;
    gpud_options o = {.size = sizeof o, .connect_timeout_ns = 10 * SECOND};
    if (setgid(STRANGER) != 0 || setuid(*(const unsigned *)user) != 0) {
        return 2;
    }
    return gpud_open(d.url, &o, &c) == GPUD_ERR_PERMISSION ? 0 : 3;
}

/* If the folder and the sockets are opened to all users, they still check the user of a
 * connection. */
START_TEST(front_and_launcher_refuse_the_workers_user)
{
    if (!possible()) {
        return;
    }
    gpud_client *c = begin(false, false);
    char path[DAEMON_PATH + 32];
    int64_t fd = -1;
    native_load(&n, c, 0);
    ck_assert_int_eq(chmod(d.dir, 0755), 0);
    (void)snprintf(path, sizeof path, "%s/launcher.sock", d.dir);
    ck_assert_int_eq(chmod(path, 0666), 0);
    ck_assert_int_eq(chmod(d.url + strlen("ipc://"), 0666), 0);
    ck_assert_int_eq(call_connect("launcher.sock", SOCK_SEQPACKET, &fd), 0);
    ck_assert_int_eq(call(SYS_read, fd, AT, 64, 2), 0); /* it hung up */
    unsigned user[] = {STRANGER, STRANGER + USERS};     /* one of a pool has the group only */
    ck_assert_int_eq(process_wait(process_start(open_as_stranger, &user[0])), 0);
    ck_assert_int_eq(process_wait(process_start(open_as_stranger, &user[1])), 0);
    end(c);
}
END_TEST

static bool worker_is(unsigned device, unsigned user)
{
    char path[64];
    struct stat st;
    pid_t pid = daemon_worker(&d, device);
    (void)snprintf(path, sizeof path, "/proc/%d", (int)pid);
    return pid > 0 && stat(path, &st) == 0 && st.st_uid == user;
}

/* Another front takes workers of that user over, and the launcher ends them. */
START_TEST(workers_of_another_user_are_kept_and_ended)
{
    if (!possible()) {
        return;
    }
    gpud_client *c = begin(false, false);
    pid_t before = daemon_worker(&d, 0);
    ck_assert(worker_is(0, STRANGER));
    ck_assert_int_eq(kill(d.pid, SIGKILL), 0);
    (void)process_wait(d.pid);
    start_front();
    ck_assert_int_eq(daemon_worker(&d, 0), before);
    native_load(&n, c, 0);
    ck_assert_int_eq(call(SYS_getuid, 0, 0, 0, 0), STRANGER);
    ck_assert_int_eq(call(SYS_getpid, 0, 0, 0, 0), before);
    /* it closes its channel: the front ends a process that it cannot see in /proc, too */
    const int64_t head[DATA] = {SYS_close, 3};
    memcpy(n.words, head, sizeof head);
    (void)native_run(&n, n.proxy);
    daemon_wait_worker(&d, 0, before);
    ck_until(worker_is(0, STRANGER));
    end(c);
}
END_TEST

/* FAULT other: native code of one worker looks for another one, or leaves code in the cache of its
 *   driver for the next worker
 * required: each worker has a user of a pool and a folder of its own; a folder is emptied before
 *   another owner gets it, however deep and full it is, and the launcher waits 2 s at most
 * defence: `launcher/slots.c`; `worker/confine.c`; `packaging/gpud.sysusers.in`
 * also: `test_system_strangers`: front_and_launcher_refuse_the_workers_user;
 *   `test_system_strangers`: a_confined_worker_of_a_pool_serves; `launcher_slots_test`;
 *   `check_units`
 * mutants: slot-user, slot-owner, slot-lock, slot-group, slot-deep, slot-time,
 *   worker-closed */
/* Two devices, a worker each. Which of the two users a worker has depends on the order of starts.
 */
START_TEST(a_pool_gives_each_worker_a_user_of_its_own)
{
    char path[DAEMON_PATH + 32];
    if (!possible()) {
        return;
    }
    ck_assert_int_eq(setenv("POCL_DEVICES", "pthread pthread", 1), 0);
    gpud_client *c = begin(false, true);
    ck_until(daemon_worker(&d, 0) > 0 && daemon_worker(&d, 1) > 0);
    native_load(&n, c, GPUD_ON(0));
    unsigned mine = (unsigned)call(SYS_getuid, 0, 0, 0, 0);
    unsigned slot = mine - STRANGER - 1;
    ck_assert_uint_lt(slot, USERS);
    ck_assert(worker_is(0, STRANGER + 1 + slot) && worker_is(1, STRANGER + 1 + (1 - slot)));
    ck_assert_int_eq(call(SYS_getegid, 0, 0, 0, 0), STRANGER);
    try_process(daemon_worker(&d, 1));
    try_process(d.pid);
    try_to_become(STRANGER + 1 + (1 - slot));
    (void)snprintf(path, sizeof path, "%.*s/home/%u", (int)(strlen(d.dir) - strlen("/run")), d.dir,
                   1 - slot);
    ck_assert_int_eq(native_open(&n, path, O_RDONLY | O_DIRECTORY), -EACCES);
    (void)snprintf(path, sizeof path, "%.*s/home/%u/home", (int)(strlen(d.dir) - strlen("/run")),
                   d.dir, slot);
    ck_assert_int_ge(native_open(&n, path, O_RDONLY | O_DIRECTORY), 0);
    end(c);
}
END_TEST

/* The same with all defences: the worker is closed to its own user, too, and to root without rights
 * over all processes. */
START_TEST(a_confined_worker_of_a_pool_serves)
{
    char path[64];
    struct stat st;
    if (!possible()) {
        return;
    }
    gpud_client *c = begin(true, true);
    native_load(&n, c, 0);
    ck_assert_int_eq(call(SYS_socket, AF_UNIX, SOCK_STREAM, 0, 0), -EPERM);
    unsigned mine = (unsigned)call(SYS_getuid, 0, 0, 0, 0);
    ck_assert(mine > STRANGER && mine <= STRANGER + USERS);
    (void)snprintf(path, sizeof path, "/proc/%d/mem", (int)daemon_worker(&d, 0));
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_uid, 0); /* not its user's: PR_SET_DUMPABLE */
    end(c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("strangers");
    suite_add(suite, a_kernel_gets_nothing_of_the_daemons);
    suite_add(suite, front_and_launcher_refuse_the_workers_user);
    suite_add(suite, workers_of_another_user_are_kept_and_ended);
    suite_add(suite, a_pool_gives_each_worker_a_user_of_its_own);
    suite_add(suite, a_confined_worker_of_a_pool_serves);
    return system_main(suite);
}
