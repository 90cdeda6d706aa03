#include "tests/system/harness/harness.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char base[] = "/tmp/gpud-system-XXXXXX";

/* Below the ports that the kernel gives to connections; each process begins elsewhere. */
void tcp_url(char *out, size_t size)
{
    enum { FIRST = 10000, COUNT = 20000 };
    static unsigned tried;
    uint16_t port = 0;
    int rc = -1;
    for (unsigned i = 0; i < COUNT && rc != 0; i++) {
        port = (uint16_t)(FIRST + ((unsigned)getpid() * 7 + tried++) % COUNT);
        struct sockaddr_in in = {.sin_family = AF_INET,
                                 .sin_port = htons(port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_ge(fd, 0);
        rc = bind(fd, (const struct sockaddr *)&in, sizeof in);
        (void)close(fd);
    }
    ck_assert_msg(rc == 0, "no port is free");
    (void)snprintf(out, size, "tcp://127.0.0.1:%u", port);
}

uint64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    uint64_t value = text != NULL ? strtoull(text, NULL, 10) : 0;
    return value > 0 ? value : otherwise;
}

uint64_t patience_ns(void)
{
    return number_of("GPUD_SYSTEM_PATIENCE", 60) * number_of("GPUD_TEST_PATIENCE", 1) * SECOND;
}

void pause_ms(unsigned ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    (void)nanosleep(&t, NULL);
}

/* ---- processes ---------------------------------------------------------------------------- */

static int status_of(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static bool reap(pid_t pid, uint64_t end_ns, int *ret_status)
{
    int status = 0;
    for (;;) {
        pid_t got = waitpid(pid, &status, WNOHANG);
        if (got == pid || (got < 0 && errno == ECHILD)) {
            *ret_status = got == pid ? status_of(status) : -1;
            return true;
        }
        if (now_ns() > end_ns) {
            return false;
        }
        pause_ms(5);
    }
}

int process_wait(pid_t pid)
{
    int status = -1;
    ck_assert_msg(reap(pid, now_ns() + 2 * PATIENCE, &status), "process %d does not end", (int)pid);
    return status;
}

pid_t process_start(int (*work)(void *data), void *data)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(work(data));
    }
    return pid;
}

static void redirect(const char *path, int fd)
{
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0 || dup2(file, fd) < 0) {
        _exit(126);
    }
}

/* descriptors: how many it may have, 0: as many as we. */
static pid_t program_start(const char *const *argv, const char *out, const char *err,
                           unsigned descriptors)
{
    sigset_t reload; /* for a gpud that cannot take it yet; it unblocks it when it can */
    sigset_t before;
    (void)sigemptyset(&reload);
    (void)sigaddset(&reload, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &reload, &before);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        redirect(out, STDOUT_FILENO);
        redirect(err, STDERR_FILENO);
        const struct rlimit limit = {.rlim_cur = descriptors, .rlim_max = descriptors};
        if (descriptors > 0 && setrlimit(RLIMIT_NOFILE, &limit) != 0) {
            _exit(125);
        }
        (void)execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return pid;
}

int run_program(const char *const *argv, const char *stdout_file, const char *stderr_file)
{
    return process_wait(program_start(argv, stdout_file, stderr_file, 0));
}

/* Whether a process has ended, also when it has not been reaped. */
static bool ended(pid_t pid)
{
    char path[64];
    char text[512];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return true;
    }
    size_t n = fread(text, 1, sizeof text - 1, f);
    (void)fclose(f);
    text[n] = '\0';
    const char *close = strrchr(text, ')');
    return close == NULL || close[2] == 'Z';
}

/* The living process of this program whose arguments name the directory. */
static pid_t find_process(const char *program, const char *dir)
{
    DIR *proc = opendir("/proc");
    ck_assert_ptr_nonnull(proc);
    pid_t found = 0;
    const struct dirent *entry;
    while (found == 0 && (entry = readdir(proc)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        char path[64];
        char text[1024];
        (void)snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
        FILE *f = pid > 0 ? fopen(path, "re") : NULL;
        if (f == NULL) {
            continue;
        }
        size_t n = fread(text, 1, sizeof text - 1, f);
        (void)fclose(f);
        text[n] = '\0';
        const char *name = strrchr(text, '/');
        bool ours = name != NULL || n > 0;
        for (size_t at = strlen(text) + 1; ours && at < n; at += strlen(text + at) + 1) {
            if (strcmp(text + at, dir) == 0 &&
                strcmp(name != NULL ? name + 1 : text, program) == 0 && !ended(pid)) {
                found = pid;
            }
        }
    }
    (void)closedir(proc);
    return found;
}

/* Ends all children and their orphans, which come to us. */
static void end_all(void)
{
    uint64_t end_ns = now_ns() + 10 * SECOND;
    while (now_ns() < end_ns) {
        pid_t pid;
        while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        }
        if (pid < 0 && errno == ECHILD) {
            return;
        }
        char path[64];
        (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
        FILE *f = fopen(path, "re");
        int child = 0;
        while (f != NULL && fscanf(f, "%d", &child) == 1) {
            (void)kill(child, SIGKILL);
        }
        if (f != NULL) {
            (void)fclose(f);
        }
        pause_ms(10);
    }
}

/* ---- files -------------------------------------------------------------------------------- */

void file_read(const char *path, char *out, size_t size)
{
    FILE *f = fopen(path, "re");
    ck_assert_msg(f != NULL, "%s: %s", path, strerror(errno));
    size_t n = fread(out, 1, size - 1, f);
    (void)fclose(f);
    out[n] = '\0';
}

void file_write(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "we");
    ck_assert_msg(f != NULL, "%s: %s", path, strerror(errno));
    ck_assert_uint_eq(fwrite(data, 1, size, f), size);
    ck_assert_int_eq(fclose(f), 0);
}

/* ---- daemon ------------------------------------------------------------------------------- */

static void prepare(struct daemon *d, const char *option, va_list list)
{
    static unsigned serial;
    memset(d, 0, sizeof *d);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    (void)snprintf(d->dir, sizeof d->dir, "%s/%d-%u", base, (int)getpid(), serial++);
    ck_assert_int_eq(mkdir(d->dir, 0700), 0);
    (void)snprintf(d->url, sizeof d->url, "ipc://%s/gpud.sock", d->dir);
    (void)snprintf(d->log, sizeof d->log, "%s/log", d->dir);
    for (; option != NULL; option = va_arg(list, const char *)) {
        ck_assert_uint_lt(d->arg_count, DAEMON_ARGS_MAX);
        d->args[d->arg_count++] = option;
    }
    (void)setenv("POCL_CACHE_DIR", SYSTEM_CACHE "/pocl", 1);
    (void)setenv("GPUD_CONFINE", "strict",
                 0); /* daemon_stop fails where a driver was refused a call */
    (void)setenv("GPUD_CONFINE_WRITE", d->dir, 1); /* doubles of drivers leave reports there */
}

void daemon_prepare(struct daemon *d, const char *option, ...)
{
    va_list list;
    va_start(list, option);
    prepare(d, option, list);
    va_end(list);
}

/* A worker of a CUDA device pins all of its staging memory when it starts, 512 MiB by default.
 * Unless a test says otherwise, less does: these pages took up to three quarters of a test's time
 * where page faults are slow. */
static unsigned spare_staging(const struct daemon *d, const char **argv)
{
    static const char *const SPARE[] = {"--set", "staging.input_bytes=32M", "--set",
                                        "staging.output_bytes=32M"};
    for (unsigned i = 0; i + 1 < d->arg_count; i++) {
        if (strcmp(d->args[i], "--backend") == 0 && strcmp(d->args[i + 1], "cuda") == 0) {
            memcpy(argv, SPARE, sizeof SPARE);
            return sizeof SPARE / sizeof SPARE[0];
        }
    }
    return 0;
}

void daemon_spawn(struct daemon *d)
{
    const char *argv[DAEMON_ARGS_MAX + 12] = {SYSTEM_BIN "/gpud", "--foreground",
                                              "--runtime-dir",    d->dir,
                                              "--cache-dir",      SYSTEM_CACHE "/gpud"};
    unsigned n = 6 + spare_staging(d, argv + 6);
    memcpy(argv + n, d->args, d->arg_count * sizeof d->args[0]);
    d->pid = program_start(argv, d->log, d->log, d->descriptors);
}

#define DAEMON_STATE 32 /* bytes of `state` in the table `status` */

/* false: no client of any kind gets an answer yet. */
static bool daemon_state(const struct daemon *d, char state[DAEMON_STATE])
{
    gpud_client *c = NULL;
    gpud_table *t = NULL;
    gpud_options o = {.size = sizeof o, .connect_timeout_ns = SECOND, .timeout_ns = 5 * SECOND};
    bool told = gpud_open(d->url, &o, &c) == 0 && gpud_query(c, "status", NULL, &t) == 0;
    if (told) {
        (void)snprintf(state, DAEMON_STATE, "%s",
                       gpud_table_text(t, 0, (uint32_t)gpud_table_find(t, "state")));
    }
    gpud_table_free(t);
    gpud_close(c);
    return told;
}

/* That workers are not confined is a problem that `status` tells. */
static bool ready(const struct daemon *d)
{
    char state[DAEMON_STATE];
    const char *confine = getenv("GPUD_CONFINE");
    const char *wanted = confine != NULL && strcmp(confine, "off") == 0 ? "degraded" : "ready";
    return daemon_state(d, state) && strcmp(state, wanted) == 0;
}

bool daemon_serves(const struct daemon *d)
{
    char state[DAEMON_STATE];
    return daemon_state(d, state) && strcmp(state, "not ready") != 0;
}

static void show_log(const struct daemon *d)
{
    static char text[DAEMON_OUTPUT];
    file_read(d->log, text, sizeof text);
    (void)fprintf(stderr, "---- %s\n%s----\n", d->log, text);
}

void daemon_wait_ready(const struct daemon *d)
{
    uint64_t end_ns = now_ns() + 2 * PATIENCE;
    while (!ready(d)) {
        if (ended(d->pid) || now_ns() > end_ns) {
            show_log(d);
            ck_abort_msg(ended(d->pid) ? "gpud ended" : "gpud is not ready");
        }
        pause_ms(20);
    }
}

void daemon_start(struct daemon *d, const char *option, ...)
{
    va_list list;
    va_start(list, option);
    prepare(d, option, list);
    va_end(list);
    daemon_spawn(d);
    daemon_wait_ready(d);
}

gpud_client *daemon_begin(struct daemon *d, const char *option, ...)
{
    va_list list;
    va_start(list, option);
    prepare(d, option, list);
    va_end(list);
    daemon_spawn(d);
    daemon_wait_ready(d);
    return client_open(d->url);
}

void daemon_end(struct daemon *d, gpud_client *c)
{
    gpud_close(c);
    daemon_stop(d);
}

void daemon_end_clean(struct daemon *d, gpud_client *c)
{
    static char report[DAEMON_OUTPUT];
    char path[DAEMON_PATH + 16];
    daemon_end(d, c);
    (void)snprintf(path, sizeof path, "%s/report", d->dir);
    file_read(path, report, sizeof report);
    ck_assert_msg(strstr(report, " misuse: ") == NULL && strstr(report, " leak: ") == NULL, "%s",
                  report);
}

int daemon_wait(struct daemon *d)
{
    int status = -1;
    if (!reap(d->pid, now_ns() + 2 * PATIENCE, &status)) {
        show_log(d);
        ck_abort_msg("gpud does not end");
    }
    d->pid = 0;
    return status;
}

void daemon_kill(struct daemon *d)
{
    ck_assert_int_eq(kill(d->pid, SIGKILL), 0);
    ck_assert_int_eq(daemon_wait(d), 128 + SIGKILL);
}

void daemon_hand_over(struct daemon *d)
{
    ck_assert_int_eq(kill(d->pid, SIGUSR1), 0);
    int status = daemon_wait(d);
    ck_assert_msg(status == 0, "gpud ended with %d", status);
}

void daemon_stop(struct daemon *d)
{
    ck_assert_int_eq(kill(d->pid, SIGTERM), 0);
    int status = daemon_wait(d);
    if (status != 0) {
        show_log(d);
    }
    ck_assert_msg(status == 0, "gpud ended with %d", status);
    ck_assert_msg(d->refuses || !daemon_logged(d, "was refused: this process is confined"),
                  "a driver needs a system call that workers do not have");
    int other = 0;
    if (!reap(-1, 0, &other)) {
        uint64_t end_ns = now_ns() + PATIENCE;
        while (waitpid(-1, NULL, WNOHANG) >= 0) {
            ck_assert_msg(now_ns() < end_ns, "gpud left processes behind");
            pause_ms(10);
        }
    }
}

bool daemon_logged(const struct daemon *d, const char *text)
{
    static char log[4 * DAEMON_OUTPUT];
    file_read(d->log, log, sizeof log);
    return strstr(log, text) != NULL;
}

pid_t daemon_launcher(const struct daemon *d)
{
    return find_process("gpud-launcher", d->dir);
}

static bool has_name(pid_t pid, const char *program)
{
    char path[64];
    char name[32] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    FILE *comm = fopen(path, "re");
    if (comm == NULL) {
        return false;
    }
    bool has = fgets(name, sizeof name, comm) != NULL;
    (void)fclose(comm);
    name[strcspn(name, "\n")] = '\0';
    return has && strcmp(name, program) == 0;
}

unsigned daemon_children(pid_t launcher, const char *program, pid_t *ret_pids, unsigned max)
{
    char path[64];
    int child = 0;
    unsigned count = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)launcher, (int)launcher);
    FILE *f = fopen(path, "re");
    while (f != NULL && count < max && fscanf(f, "%d", &child) == 1) {
        if (has_name(child, program)) {
            ret_pids[count++] = child;
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return count;
}

pid_t daemon_compiler(const struct daemon *d)
{
    pid_t found = 0;
    return daemon_children(daemon_launcher(d), "gpud-compile", &found, 1) > 0 ? found : 0;
}

pid_t daemon_worker(const struct daemon *d, unsigned device)
{
    char row[16];
    (void)snprintf(row, sizeof row, "%u", device);
    gpud_client *c = client_open(d->url);
    uint64_t pid = query_value(c, "devices", row, "worker");
    gpud_close(c);
    return pid == UINT64_MAX || ended((pid_t)pid) ? 0 : (pid_t)pid;
}

/* It is asked for once: between two questions the former worker may end. */
bool daemon_has_another(const struct daemon *d, unsigned device, pid_t before)
{
    pid_t worker = daemon_worker(d, device);
    return worker != 0 && worker != before;
}

void daemon_wait_worker(const struct daemon *d, unsigned device, pid_t before)
{
    ck_until(daemon_has_another(d, device, before));
    daemon_wait_ready(d);
}

/* ---- clients ------------------------------------------------------------------------------ */

gpud_client *client_open(const char *url)
{
    gpud_client *c = NULL;
    gpud_options o = {.size = sizeof o, .connect_timeout_ns = PATIENCE, .timeout_ns = 2 * PATIENCE};
    ck_until(gpud_open(url, &o, &c) != GPUD_ERR_CONNECT);
    ck_assert_msg(c != NULL, "%s: %s", url, gpud_last_error()->text);
    return c;
}

gpud_kernel kernel_find(gpud_client *c, const char *name)
{
    gpud_kernel k = {0};
    ck_gpud_ok(gpud_kernel_find(c, name, &k));
    return k;
}

void job_await_dispatch(gpud_client *c, const gpud_job *job)
{
    gpud_job_desc desc = {.size = sizeof desc};
    ck_until(gpud_dispatch(c) == 0 && (gpud_job_done(job) || gpud_job_id(job) != 0));
    ck_until((gpud_dispatch(c) == 0 && gpud_job_done(job)) ||
             (gpud_job_info(c, gpud_job_id(job), &desc) == 0 && desc.dispatched_ns != 0));
}

static uint32_t find_row(const gpud_table *t, const char *row)
{
    uint32_t at = 0;
    while (row != NULL && at < gpud_table_rows(t)) {
        char number[24];
        (void)snprintf(number, sizeof number, "%llu",
                       (unsigned long long)gpud_table_value(t, at, 0));
        bool text = gpud_table_column_kind(t, 0) == GPUD_COLUMN_TEXT;
        if (strcmp(text ? gpud_table_text(t, at, 0) : number, row) == 0) {
            break;
        }
        at++;
    }
    return at;
}

uint64_t query_value(gpud_client *c, const char *table, const char *row, const char *column)
{
    gpud_table *t = NULL;
    ck_gpud_ok(gpud_query(c, table, NULL, &t));
    int at = gpud_table_find(t, column);
    ck_assert_msg(at >= 0, "%s has no column %s", table, column);
    uint32_t line = find_row(t, row);
    uint64_t value =
        line < gpud_table_rows(t) ? gpud_table_value(t, line, (uint32_t)at) : UINT64_MAX;
    gpud_table_free(t);
    return value;
}

void query_text(gpud_client *c, const char *table, const char *row, const char *column, char *out,
                size_t size)
{
    gpud_table *t = NULL;
    ck_gpud_ok(gpud_query(c, table, NULL, &t));
    int at = gpud_table_find(t, column);
    ck_assert_msg(at >= 0, "%s has no column %s", table, column);
    (void)snprintf(out, size, "%s", gpud_table_text(t, find_row(t, row), (uint32_t)at));
    gpud_table_free(t);
}

int gpuctl(const struct daemon *d, char *out, char *err, const char *argument, ...)
{
    static unsigned serial;
    const char *argv[48] = {SYSTEM_BIN "/gpuctl", "-u", d->url};
    unsigned count = 3;
    va_list list;
    va_start(list, argument);
    for (; argument != NULL; argument = va_arg(list, const char *)) {
        ck_assert_uint_lt(count, 47);
        argv[count++] = argument;
    }
    va_end(list);
    char out_file[DAEMON_PATH + 32];
    char err_file[DAEMON_PATH + 32];
    (void)snprintf(out_file, sizeof out_file, "%s/out%u", d->dir, serial);
    (void)snprintf(err_file, sizeof err_file, "%s/err%u", d->dir, serial++);
    int status = run_program(argv, out_file, err_file);
    file_read(out_file, out, DAEMON_OUTPUT);
    file_read(err_file, err, DAEMON_OUTPUT);
    return status;
}

/* ---- the program -------------------------------------------------------------------------- */

static void finish_program(const char *const *argv)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(STDERR_FILENO, STDOUT_FILENO);
        (void)execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    (void)waitpid(pid, NULL, 0);
}

TCase *suite_add_case(Suite *suite, const char *name, const TTest *test, int count)
{
    TCase *tc = tcase_create(name);
    tcase_set_timeout(tc, 400);
    tcase_add_loop_test(tc, test, 0, count);
    suite_add_tcase(suite, tc);
    return tc;
}

int system_main(Suite *suite)
{
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (mkdtemp(base) == NULL || (mkdir(SYSTEM_CACHE, 0700) != 0 && errno != EEXIST)) {
        perror("a directory for the tests");
        return EXIT_FAILURE;
    }
    (void)mkdir(SYSTEM_CACHE "/pocl", 0700);
    (void)mkdir(SYSTEM_CACHE "/gpud", 0700);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    end_all();
    if (failed > 0) {
        (void)fprintf(stderr, "the daemons' last words:\n");
        (void)fflush(stderr);
        const char *const tail[] = {
            "sh", "-c", "for log in \"$0\"/*/log; do echo \"== $log\"; tail -n 40 \"$log\"; done",
            base, NULL};
        finish_program(tail);
    }
    const char *const argv[] = {"rm", "-rf", base, NULL};
    finish_program(argv);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- the driver double ----------------------------------------------------------------------- */

void gate_open(const struct daemon *d)
{
    char path[DAEMON_PATH + 32];
    (void)snprintf(path, sizeof path, "%s/state/gate", d->dir);
    file_write(path, "", 0);
}

bool gate_shut(const struct daemon *d)
{
    char path[DAEMON_PATH + 32];
    (void)snprintf(path, sizeof path, "%s/state/waits", d->dir);
    return access(path, F_OK) == 0;
}
