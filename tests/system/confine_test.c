/* What a kernel of native code reaches from its worker: nothing of another worker, of the daemon or
 * of the host. As root, whom nothing but this confinement keeps from it. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/system/native.h"

#define SECRET_WORDS 512u
#define RANGES       2048u
#define MAPS_BYTES   (512u * 1024u)
#define PIECE        (UINT64_C(64) << 20) /* bytes that one job scans */

static struct daemon d;
static struct native n;

/* Can it be shown here? */
static bool possible(void)
{
    if (!NATIVE) {
        return false;
    }
    if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) < 1) {
        (void)fprintf(stderr, "skipped: this kernel has no Landlock\n");
        return false;
    }
    return true;
}

/* Two devices, each with a worker of its own. */
static gpud_client *begin(void)
{
    daemon_prepare(&d, "--backend", "opencl", NULL);
    ck_assert_int_eq(setenv("POCL_DEVICES", "pthread pthread", 1), 0);
    ck_assert_int_eq(unsetenv("GPUD_CONFINE_WRITE"), 0);
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    gpud_client *c = client_open(d.url);
    ck_until(daemon_worker(&d, 0) > 0 && daemon_worker(&d, 1) > 0);
    native_load(&n, c, GPUD_ON(0));
    d.refuses = true;
    return c;
}

/* ---- memory --------------------------------------------------------------------------------- */

static void secret_make(uint64_t *secret, unsigned seed)
{
    uint64_t x = (uint64_t)getpid() << 20 | seed | 1;
    for (unsigned i = 0; i < SECRET_WORDS; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        secret[i] = x;
    }
}

static gpud_buffer secret_store(gpud_client *c, uint64_t device, const uint64_t *secret)
{
    gpud_buffer b = {0};
    ck_gpud_ok(
        gpud_buffer_create_on(c, device, gpud_shape_1d(GPUD_U64, SECRET_WORDS), 0, "secret", &b));
    ck_gpud_ok(gpud_write(c, b, GPUD_U64, 0, SECRET_WORDS, secret, 0));
    return b;
}

/* How often two words of a secret lie in [from, to) of the worker. */
static uint64_t scan(const uint64_t *secret, uint64_t from, uint64_t to)
{
    uint64_t found = 0;
    for (uint64_t at = from; at < to; at += PIECE) {
        uint64_t end = to - at > PIECE ? at + PIECE + 8 : to;
        n.words[0] = (int64_t)at;
        n.words[1] = (int64_t)end;
        n.words[2] = (int64_t)~secret[SECRET_WORDS / 2];
        n.words[3] = (int64_t)~secret[SECRET_WORDS / 2 + 1];
        int rc = native_run(&n, n.scan);
        ck_assert_msg(rc == 0, "%llx: %s", (unsigned long long)at, gpud_last_error()->text);
        found += (uint64_t)n.words[4];
    }
    return found;
}

/* Memory that was never touched is left out: it is zero, and there is much of it. */
static bool resident(uint64_t from, uint64_t to)
{
    bool any = false;
    for (uint64_t at = from; !any && at < to; at += UINT64_C(1) << 20) {
        uint64_t bytes = to - at < UINT64_C(1) << 20 ? to - at : UINT64_C(1) << 20;
        if (native_call(&n, SYS_mincore, (int64_t)at, (int64_t)bytes, AT, 0, 4) != 0) {
            return true;
        }
        for (uint64_t page = 0; page < bytes / 4096; page++) {
            any = any || (native_data(&n)[page] & 1) != 0;
        }
    }
    return any;
}

struct range {
    uint64_t from, to;
};

/* The worker's memory that is there and has this right, 'r' or 'w'. How many ranges. */
static unsigned ranges_of(int place, char right, struct range *ret_ranges, unsigned max)
{
    static char maps[MAPS_BYTES];
    unsigned count = 0;
    int64_t size = native_read(&n, "/proc/self/maps", maps, sizeof maps - 1);
    ck_assert_int_gt(size, 0);
    maps[size] = '\0';
    for (char *line = maps; line != NULL && *line != '\0';) {
        unsigned long long from = 0;
        unsigned long long to = 0;
        char rights[8] = "";
        char *end = strchr(line, '\n');
        if (end != NULL) {
            *end = '\0';
        }
        if (sscanf(line, "%llx-%llx %7s", &from, &to, rights) == 3 && rights[place] == right &&
            strstr(line, "[v") == NULL && resident(from, to)) {
            ck_assert_uint_lt(count, max);
            ret_ranges[count++] = (struct range){from, to};
        }
        line = end != NULL ? end + 1 : NULL;
    }
    return count;
}

/* All that the worker can read; both secrets at once. */
static void scan_all(const uint64_t *own, const uint64_t *other, uint64_t *ret_own,
                     uint64_t *ret_other)
{
    static struct range range[RANGES];
    unsigned count = ranges_of(0, 'r', range, RANGES);
    *ret_own = 0;
    *ret_other = 0;
    for (unsigned i = 0; i < count; i++) {
        *ret_own += scan(own, range[i].from, range[i].to);
        *ret_other += scan(other, range[i].from, range[i].to);
    }
}

static void still_there(gpud_client *c, gpud_buffer b, const uint64_t *secret)
{
    static uint64_t now[SECRET_WORDS];
    ck_gpud_ok(gpud_read(c, b, GPUD_U64, 0, SECRET_WORDS, now, 0));
    ck_assert(memcmp(now, secret, sizeof now) == 0);
}

/* The kernel finds what its own worker holds, so that it would find the other's. */
START_TEST(a_kernel_finds_only_its_own_workers_memory)
{
    static uint64_t own[SECRET_WORDS];
    static uint64_t other[SECRET_WORDS];
    uint64_t owns = 0;
    uint64_t others = 0;
    if (!possible()) {
        return;
    }
    gpud_client *c = begin();
    secret_make(own, 2);
    secret_make(other, 4);
    gpud_buffer mine = secret_store(c, 0, own);
    gpud_buffer theirs = secret_store(c, 1, other);
    scan_all(own, other, &owns, &others);
    ck_assert_uint_gt(owns, 0);
    ck_assert_uint_eq(others, 0);
    still_there(c, mine, own);
    still_there(c, theirs, other);
    daemon_end(&d, c);
}
END_TEST

/* It writes to all that it can, and ends its worker; no other process notices. */
START_TEST(a_kernel_spoils_only_its_own_worker)
{
    static struct range range[RANGES];
    static uint64_t secret[SECRET_WORDS];
    int rc = 0;
    if (!possible()) {
        return;
    }
    gpud_client *c = begin();
    pid_t mine = daemon_worker(&d, 0);
    pid_t theirs = daemon_worker(&d, 1);
    secret_make(secret, 6);
    gpud_buffer b = secret_store(c, 1, secret);
    unsigned count = ranges_of(1, 'w', range, RANGES);
    ck_assert_uint_gt(count, 1);
    for (unsigned i = 0; rc == 0 && i < count; i++) {
        n.words[0] = (int64_t)range[i].from;
        n.words[1] = (int64_t)range[i].to;
        rc = native_run(&n, n.spoil);
    }
    ck_assert_int_ne(rc, 0);
    still_there(c, b, secret);
    ck_assert_int_eq(daemon_worker(&d, 1), theirs);
    daemon_wait_worker(&d, 0, mine);
    daemon_end(&d, c);
}
END_TEST

/* ---- files ---------------------------------------------------------------------------------- */

static void closed(const char *path)
{
    ck_assert_msg(native_open(&n, path, O_RDONLY) == -EACCES, "%s: %ld", path, (long)n.words[0]);
    ck_assert_msg(native_open(&n, path, O_RDWR) == -EACCES, "%s: %ld", path, (long)n.words[0]);
}

static void closed_process(pid_t pid)
{
    static const char *const files[] = {"mem",     "maps", "environ",
                                        "cmdline", "fd/3", "root/etc/passwd"};
    char path[64];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, files[i]);
        int64_t rc = native_open(&n, path, O_RDONLY);
        ck_assert_msg(rc == -EACCES || rc == -EPERM, "%s: %ld", path, (long)rc);
    }
}

/* FAULT other: a kernel of native code that reads and writes what its worker reaches: memory,
 * files,
 *   `/proc`, `/dev/shm`, caches, sockets, other processes
 * required: it finds nothing of another worker, of the daemon or of the host, also as root;
 *   refused calls are named in the log
 * defence: `worker/confine.c`; `confine/landlock.c`; `confine/filter.c`
 * also: `test_system_confine`; `confine_filter_test`; `confine_landlock_test`
 * mutants: confine-files, confine-calls, confine-threads, confine-spaces, confine-own,
 *   confine-group, confine-once */
START_TEST(a_kernel_opens_nothing_of_others)
{
    char path[DAEMON_PATH + 32];
    struct stat st;
    if (!possible()) {
        return;
    }
    gpud_client *c = begin();
    closed_process(daemon_worker(&d, 1));
    closed_process(daemon_launcher(&d));
    closed_process(d.pid);
    closed_process(1);
    ck_assert_int_eq(native_open(&n, "/proc", O_RDONLY | O_DIRECTORY), -EACCES);
    ck_assert_int_eq(native_open(&n, "/dev/shm", O_RDONLY | O_DIRECTORY), -EACCES);
    ck_assert_int_eq(native_open(&n, "/dev/shm/gpud-planted", O_RDWR | O_CREAT), -EACCES);
    ck_assert_int_eq(native_open(&n, "/tmp", O_RDONLY | O_DIRECTORY), -EACCES);
    ck_assert_int_eq(native_open(&n, d.dir, O_RDONLY | O_DIRECTORY), -EACCES);
    closed(d.log);
    (void)snprintf(path, sizeof path, "%s/gpud.lock", d.dir);
    ck_assert_int_eq(stat(path, &st), 0);
    closed(path);
    ck_assert_int_eq(native_open(&n, SYSTEM_CACHE "/gpud", O_RDONLY | O_DIRECTORY), -EACCES);
    closed("/etc/shadow");
    ck_assert_int_eq(native_open(&n, "/usr/gpud-planted", O_RDWR | O_CREAT), -EACCES);
    (void)snprintf(path, sizeof path, "/proc/%d/mem", (int)daemon_worker(&d, 0));
    (void)native_open(&n, path, O_RDWR); /* its own memory: no harm */
    daemon_end(&d, c);
}
END_TEST

/* ---- calls ---------------------------------------------------------------------------------- */

static void refused(const char *what, long number, int64_t a0, int64_t a1, int64_t a2)
{
    int64_t rc = native_call(&n, number, a0, a1, a2, 0, 0);
    ck_assert_msg(rc == -EPERM, "%s: %ld", what, (long)rc);
}

#define REFUSED(name, a0, a1, a2) refused(#name, SYS_##name, a0, a1, a2)

static void try_sockets(void)
{
    static const int families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_VSOCK};
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        REFUSED(socket, families[i], SOCK_STREAM, 0);
        REFUSED(socket, families[i], SOCK_DGRAM, 0);
    }
    REFUSED(socketpair, AF_UNIX, SOCK_DGRAM, 0);
    REFUSED(connect, 3, 0, 0);
    REFUSED(bind, 3, 0, 0);
}

static void try_processes(pid_t pid)
{
    REFUSED(kill, pid, 0, 0);
    REFUSED(kill, pid, SIGKILL, 0);
    REFUSED(kill, -1, SIGKILL, 0);
    REFUSED(kill, 0, SIGKILL, 0);
    REFUSED(tgkill, pid, pid, SIGKILL);
    REFUSED(tkill, pid, SIGKILL, 0);
    REFUSED(ptrace, PTRACE_ATTACH, pid, 0);
    REFUSED(pidfd_open, pid, 0, 0);
    REFUSED(pidfd_getfd, 3, 0, 0);
    REFUSED(process_vm_readv, pid, 0, 0);
    REFUSED(process_vm_writev, pid, 0, 0);
    REFUSED(kcmp, pid, pid, 0);
    REFUSED(prlimit64, pid, 0, 0);
    REFUSED(move_pages, pid, 0, 0);
    REFUSED(migrate_pages, pid, 0, 0);
    REFUSED(fcntl, 3, F_SETOWN, pid);
    REFUSED(fcntl, 3, F_SETSIG, SIGKILL);
}

static void try_system(void)
{
    REFUSED(mount, 0, 0, 0);
    REFUSED(unshare, CLONE_NEWUSER, 0, 0);
    REFUSED(setns, 3, 0, 0);
    REFUSED(clone, CLONE_NEWUSER | SIGCHLD, 0, 0);
    REFUSED(bpf, 0, 0, 0);
    REFUSED(perf_event_open, 0, 0, 0);
    REFUSED(userfaultfd, 0, 0, 0);
    REFUSED(keyctl, 0, 0, 0);
    REFUSED(add_key, 0, 0, 0);
    REFUSED(setuid, 1, 0, 0);
    REFUSED(chroot, 0, 0, 0);
    REFUSED(init_module, 0, 0, 0);
    REFUSED(mknodat, 0, 0, 0);
    REFUSED(shmget, 1, 4096, 0);
    REFUSED(mq_open, 0, 0, 0);
    REFUSED(prctl, PR_SET_DUMPABLE, 1, 0);
    REFUSED(open_by_handle_at, 0, 0, 0);
    REFUSED(ioctl, 0, 0x5412, 0); /* TIOCSTI types into a terminal */
    ck_assert_int_eq(native_call(&n, SYS_io_uring_setup, 1, AT, 0, 0, 2), -ENOSYS);
    ck_assert_int_eq(native_call(&n, SYS_clone3, AT, 88, 0, 0, 1), -ENOSYS);
    (void)snprintf(native_data(&n), 64, "/tmp");
    ck_assert_int_eq(native_call(&n, SYS_chmod, AT, 0777, 0, 0, 1), -EPERM);
}

START_TEST(a_kernel_makes_no_other_calls)
{
    if (!possible()) {
        return;
    }
    gpud_client *c = begin();
    pid_t before = daemon_worker(&d, 0);
    try_sockets();
    try_processes(daemon_worker(&d, 1));
    try_processes(d.pid);
    try_system();
    ck_assert_int_eq(native_call(&n, SYS_getpid, 0, 0, 0, 0, 0), before);
    ck_assert(daemon_logged(&d, "(socket) was refused"));
    ck_assert(daemon_logged(&d, "(process_vm_readv) was refused"));
    ck_assert(daemon_logged(&d, "(ioctl) was refused"));
    daemon_end(&d, c);
}
END_TEST

/* ---- what operators see ---------------------------------------------------------------------- */

START_TEST(an_unconfined_worker_is_told)
{
    char text[512];
    daemon_prepare(&d, "--backend", "sim", NULL);
    ck_assert_int_eq(setenv("GPUD_CONFINE", "off", 1), 0);
    daemon_spawn(&d);
    gpud_client *c = client_open(d.url);
    ck_until(query_value(c, "status", NULL, "serving") == 1);
    query_text(c, "devices", NULL, "note", text, sizeof text);
    ck_assert_msg(strstr(text, "not confined") != NULL, "%s", text);
    ck_assert(daemon_logged(&d, "not confined: GPUD_CONFINE=off"));
    daemon_end(&d, c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("confine");
    suite_add(suite, a_kernel_finds_only_its_own_workers_memory);
    suite_add(suite, a_kernel_spoils_only_its_own_worker);
    suite_add(suite, a_kernel_opens_nothing_of_others);
    suite_add(suite, a_kernel_makes_no_other_calls);
    suite_add(suite, an_unconfined_worker_is_told);
    return system_main(suite);
}
