/*
 * bench_coldstart: the time from the start of a new process to its first verified result: with a
 * context of its own, and as a client of gpud. Caches of compiled code are warm for both.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/common/bench.h"
#include "bench/common/echo.h"
#include "bench/common/plans.h"
#include "common/clock.h"

#define COUNT 65536u

/* The work of the new process. */
static int first_result(const char *engine, const char *url)
{
    const char *why = NULL;
    const struct engine_kind *kind =
        strcmp(engine, "gpud") == 0 ? &engine_gpud : engine_direct(engine);
    struct engine *e = kind != NULL ? kind->open(url, &why) : NULL;
    if (e == NULL) {
        bench_die("%s: %s", engine, why != NULL ? why : "not built in");
    }
    struct planned p;
    planned_init(&p, PLANS_SUM, COUNT);
    struct work *w = kind->prepare(e, &p.plan);
    kind->begin(w, 0);
    kind->take(w, 0);
    float *result = kind->fetch(w);
    bool right = planned_right(&p, result, 1);
    _Exit(right ? EXIT_SUCCESS : EXIT_FAILURE); /* without closing, which is not measured */
}

/* Milliseconds from the fork to the end of the new process. */
static double run(const char *engine, const char *url)
{
    int status = 0;
    uint64_t begin_ns = clock_now_ns();
    pid_t pid = fork();
    if (pid == 0) {
        (void)execl("/proc/self/exe", "bench_coldstart", "--first-result", engine, url,
                    (char *)NULL);
        bench_die("starting again: %s", strerror(errno));
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
        WEXITSTATUS(status) != 0) {
        bench_die("a process with %s ended with status %#x", engine, (unsigned)status);
    }
    return (double)(clock_now_ns() - begin_ns) / 1e6;
}

int main(int argc, char **argv)
{
    struct bench b;
    struct gpud g;
    const char *why = "the API of gpud's back end is not built into the benchmark";
    if (argc == 4 && strcmp(argv[1], "--first-result") == 0) {
        return first_result(argv[2], argv[3]);
    }
    bench_begin(&b, "coldstart",
                "From the start of a process to its first verified result: with a context of its\n"
                "own and through gpud, compiled kernels in both caches.",
                15, argc, argv);
    bench_gpud(&b, &g, NULL);
    bool direct = engine_direct(g.backend) != NULL;
    for (unsigned i = 0; i <= b.repeat; i++) {
        double gpud = run("gpud", g.url);
        double own = direct ? run(g.backend, g.url) : 0;
        if (i > 0) { /* the first repetition fills the caches */
            report_add(&b.report, "first result", "gpud", "time", "ms", gpud);
        }
        if (i > 0 && direct) {
            report_add(&b.report, "first result", g.backend, "time", "ms", own);
            report_add(&b.report, "first result", "gpud", "saved", "%", 100 * (1 - gpud / own));
        }
    }
    if (!direct) {
        report_left_out(&b.report, "own context", why);
    }
    report_against(&b.report, "first result", "gpud", "time", g.backend);
    gpud_stop(&g);
    return bench_end(&b);
}
