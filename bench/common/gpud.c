#include "bench/common/gpud.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/common/echo.h"
#include "bench/common/scratch.h"
#include "common/clock.h"

#define READY_NS (120 * NS_PER_S)
#define END_NS   (30 * NS_PER_S)

static void doze(void)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    (void)nanosleep(&pause, NULL);
}

/* The path of gpud: in the benchmark's folder. */
static void program_path(char *path, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", path, size - 8);
    if (n <= 0) {
        bench_die("/proc/self/exe: %s", strerror(errno));
    }
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    memcpy(slash + 1, "gpud", 5);
}

const char *gpud_cache(void)
{
    const char *given = getenv("BENCH_CACHE_DIR");
    return given != NULL ? given : BENCH_CACHE;
}

static _Noreturn void become(const struct gpud *g, const char *const *args)
{
    char path[512];
    char log[96];
    const char *argv[GPUD_ARGS_MAX + 9] = {"gpud",        "--foreground", "--runtime-dir", g->dir,
                                           "--cache-dir", gpud_cache(),   "--listen",      g->url};
    for (unsigned i = 0; args != NULL && args[i] != NULL && i < GPUD_ARGS_MAX; i++) {
        argv[8 + i] = args[i];
    }
    (void)snprintf(log, sizeof log, "%s/log", g->dir);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    program_path(path, sizeof path);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0) {
        bench_die("%s: %s", log, strerror(errno));
    }
    (void)execv(path, (char *const *)(uintptr_t)argv);
    bench_die("%s: %s", path, strerror(errno));
}

static void show_log(const struct gpud *g)
{
    char path[96];
    char line[512];
    (void)snprintf(path, sizeof path, "%s/log", g->dir);
    FILE *f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        (void)fputs(line, stderr);
    }
    if (f != NULL) {
        (void)fclose(f);
    }
}

static const char *cell(const gpud_table *t, uint32_t row, const char *column)
{
    int at = gpud_table_find(t, column);
    return at < 0 ? "" : gpud_table_text(t, row, (uint32_t)at);
}

/* Is the daemon ready? If so, records its processes and its device. */
static bool find_ready(struct gpud *g)
{
    const gpud_options o = {
        .size = sizeof o, .connect_timeout_ns = 2 * NS_PER_S, .timeout_ns = 5 * NS_PER_S};
    gpud_client *c = NULL;
    gpud_table *t = NULL;
    if (gpud_open(g->url, &o, &c) != 0) {
        return false;
    }
    bool ready =
        gpud_query(c, "status", NULL, &t) == 0 && strcmp(cell(t, 0, "state"), "ready") == 0;
    gpud_table_free(t);
    t = NULL;
    if (ready && gpud_query(c, "devices", NULL, &t) == 0) {
        int at = gpud_table_find(t, "worker");
        g->workers = 0;
        for (uint32_t i = 0; at >= 0 && i < gpud_table_rows(t) && i < GPUD_WORKERS; i++) {
            g->worker[g->workers++] = (pid_t)gpud_table_value(t, i, (uint32_t)at);
        }
        (void)snprintf(g->backend, sizeof g->backend, "%s", cell(t, 0, "backend"));
        (void)snprintf(g->device, sizeof g->device, "%s", cell(t, 0, "name"));
        gpud_table_free(t);
    }
    gpud_close(c);
    return ready && g->workers > 0;
}

/* The launcher begins a session, which Linux schedules as a group of its own (autogroup). It gets
 * the priority of the benchmark's, or a busy machine would give the workers less than the front. */
static void keep_priority(pid_t launcher)
{
    char path[64];
    char text[64] = "";
    FILE *f = fopen("/proc/self/autogroup", "re");
    const char *at =
        f != NULL && fgets(text, sizeof text, f) != NULL ? strstr(text, "nice ") : NULL;
    long nice = at != NULL ? strtol(at + strlen("nice "), NULL, 10) : 0;
    if (f != NULL) {
        (void)fclose(f);
    }
    (void)snprintf(path, sizeof path, "/proc/%d/autogroup", (int)launcher);
    f = nice != 0 ? fopen(path, "we") : NULL;
    if (f != NULL) {
        (void)fprintf(f, "%ld", nice);
        (void)fclose(f);
    }
}

void gpud_start(struct gpud *g, const char *const *args)
{
    static unsigned serial;
    *g = (struct gpud){.workers = 0};
    (void)snprintf(g->dir, sizeof g->dir, "/tmp/gpud-bench-%d-%u-XXXXXX", (int)getpid(), serial++);
    scratch_folder(g->dir);
    (void)snprintf(g->url, sizeof g->url, "ipc://%s/gpud.sock", g->dir);
    g->front = fork();
    if (g->front == 0) {
        become(g, args);
    }
    uint64_t end_ns = clock_now_ns() + READY_NS;
    while (g->front < 0 || !find_ready(g)) {
        if (g->front < 0 || clock_now_ns() > end_ns || waitpid(g->front, NULL, WNOHANG) != 0) {
            show_log(g);
            bench_die("gpud did not become ready");
        }
        doze();
    }
    g->launcher = process_parent(g->worker[0]);
    keep_priority(g->launcher);
    (void)setenv(GPUD_BACKEND, g->backend, 1);
}

void gpud_stop(struct gpud *g)
{
    uint64_t end_ns = clock_now_ns() + END_NS;
    int status = 0;
    (void)kill(g->front, SIGTERM);
    while (waitpid(g->front, &status, WNOHANG) == 0) {
        if (clock_now_ns() > end_ns) {
            (void)kill(g->front, SIGKILL);
            bench_die("gpud did not end");
        }
        doze();
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        show_log(g);
        bench_die("gpud ended with status %#x", (unsigned)status);
    }
    scratch_remove(g->dir);
}

void gpud_place(const struct gpud *g, enum placement p)
{
    machine_pin_server(p, g->front);
    machine_pin_server(p, g->launcher);
    for (unsigned i = 0; i < g->workers; i++) {
        machine_pin_server(p, g->worker[i]);
    }
}

uint64_t gpud_cpu_ns(const struct gpud *g)
{
    uint64_t sum = process_cpu_ns(g->front) + process_cpu_ns(g->launcher);
    for (unsigned i = 0; i < g->workers; i++) {
        sum += process_cpu_ns(g->worker[i]);
    }
    return sum;
}
