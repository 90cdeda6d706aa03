/*
 * bench_sessions: the cost of an idle session: memory of the daemon and of its client, and CPU time
 * of a daemon without requests. Shows that thousands of sessions are possible.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/common/bench.h"
#include "bench/common/echo.h"
#include "bench/common/partner.h"
#include "common/clock.h"

#define HOLDERS 10u

struct holding {
    const char *url;
    unsigned count;
};

/* Opens sessions and keeps them until a byte arrives. */
static void hold(const void *holding, int in, int out)
{
    const char *url = ((const struct holding *)holding)->url;
    unsigned count = ((const struct holding *)holding)->count;
    gpud_client **clients = calloc(count, sizeof(gpud_client *));
    char byte = 0;
    if (clients == NULL) {
        bench_die("no memory");
    }
    uint64_t before = process_memory_bytes(getpid());
    for (unsigned i = 0; i < count; i++) {
        if (gpud_open(url, NULL, &clients[i]) != 0 || gpud_ping(clients[i], NULL) != 0) {
            bench_die("session %u of this process: %s", i, gpud_last_error()->text);
        }
    }
    uint64_t bytes = process_memory_bytes(getpid()) - before;
    if (write(out, &bytes, sizeof bytes) != (ssize_t)sizeof bytes) {
        _Exit(EXIT_FAILURE);
    }
    (void)!read(in, &byte, 1);
    for (unsigned i = 0; i < count; i++) {
        uint64_t ns = 0;
        if (gpud_ping(clients[i], &ns) != 0) {
            bench_die("session %u of this process was not held: %s", i, gpud_last_error()->text);
        }
        gpud_close(clients[i]);
    }
    _Exit(EXIT_SUCCESS);
}

/* CPU time of all of gpud's processes, workers included, without any requests. */
static void idle(struct bench *b, const struct gpud *g, const char *part)
{
    const unsigned settle_ms = bench_scale(b, 2000u, 10u), ms = bench_scale(b, 10000u, 100u);
    (void)usleep(settle_ms * 1000);
    uint64_t before = gpud_cpu_ns(g), begin_ns = clock_now_ns();
    (void)usleep(ms * 1000);
    double share = (double)(gpud_cpu_ns(g) - before) / (double)(clock_now_ns() - begin_ns);
    report_add(&b->report, part, "gpud", "cpu", "%", share * 100);
}

static void repetition(struct bench *b, const struct gpud *g, unsigned count)
{
    struct partner holder[HOLDERS];
    const struct holding holding = {g->url, count / HOLDERS};
    uint64_t client = 0;
    uint64_t before = process_memory_bytes(g->front);
    for (unsigned i = 0; i < HOLDERS; i++) {
        partner_start(&holder[i], hold, &holding);
    }
    for (unsigned i = 0; i < HOLDERS; i++) {
        uint64_t bytes = 0;
        partner_read(&holder[i], &bytes, sizeof bytes);
        client += bytes;
    }
    uint64_t bytes = process_memory_bytes(g->front) - before;
    report_add(&b->report, "idle sessions", "gpud", "held", "", count);
    report_add(&b->report, "idle sessions", "gpud", "daemon's memory", "KiB",
               (double)bytes / 1024 / count);
    report_add(&b->report, "idle sessions", "client", "library's memory", "KiB",
               (double)client / 1024 / count);
    idle(b, g, "idle sessions");
    for (unsigned i = 0; i < HOLDERS; i++) {
        partner_signal(&holder[i]); /* other partners have the pipe, so closing it is no signal */
        partner_end(&holder[i]);
    }
}

int main(int argc, char **argv)
{
    static const char *const settings[] = {"--set", "jobs.sessions_max=8000", "--set",
                                           "daemon.connections_max=6000", NULL};
    struct bench b;
    struct rlimit files;
    bench_begin(&b, "sessions", "Memory of sessions that do nothing, and how many are held.", 1,
                argc, argv);
    unsigned count = bench_scale(&b, 5000u, 40u);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_max < 16000) {
        count = files.rlim_max < 2000 ? 40 : (unsigned)files.rlim_max / 4;
        report_left_out(&b.report, "more sessions", "this machine allows too few descriptors");
    }
    for (unsigned i = 0; i < b.repeat; i++) {
        struct gpud g; /* a new gpud each time, because it would reuse freed memory */
        bench_gpud(&b, &g, settings);
        idle(&b, &g, "no sessions");
        repetition(&b, &g, count);
        gpud_stop(&g);
    }
    return bench_end(&b);
}
