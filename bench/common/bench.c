#include "bench/common/bench.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/common/echo.h"
#include "bench/common/plan.h"
#include "bench/common/plans.h"

const char *const bench_lanes[] = {"nng", "ring", NULL};

static _Noreturn void help(const char *name, const char *what, int status)
{
    (void)fprintf(status == 0 ? stdout : stderr,
                  "Usage: bench_%s [OPTION]...\n%s\n"
                  "  --json           one JSON object instead of a table\n"
                  "  --repeat N       repetitions of everything\n"
                  "  --only TEXT      the parts whose name holds this\n"
                  "  --backend NAME   gpud's back end: auto, opencl, cuda, sim\n"
                  "  --smoke          a test of the benchmark itself: no figure counts\n"
                  "See bench/README.md for how to read the figures.\n",
                  name, what);
    exit(status);
}

static unsigned number(const char *text)
{
    char *end = NULL;
    unsigned long value = strtoul(text, &end, 10);
    if (end == text || *end != '\0' || value == 0 || value > 100000) {
        bench_die("'%s' is no number of repetitions", text);
    }
    return (unsigned)value;
}

static const char *command_of(int argc, char **argv)
{
    static char line[256];
    size_t at = 0;
    for (int i = 0; i < argc && at < sizeof line; i++) {
        const char *slash = i == 0 ? strrchr(argv[0], '/') : NULL;
        int n = snprintf(line + at, sizeof line - at, "%s%s", i == 0 ? "" : " ",
                         slash != NULL ? slash + 1 : argv[i]);
        at += n > 0 ? (size_t)n : 0;
    }
    return line;
}

void bench_begin(struct bench *b, const char *name, const char *what, unsigned repeat, int argc,
                 char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, 'j'},
                                            {"smoke", no_argument, NULL, 's'},
                                            {"repeat", required_argument, NULL, 'r'},
                                            {"only", required_argument, NULL, 'o'},
                                            {"backend", required_argument, NULL, 'b'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    *b = (struct bench){.repeat = 0};
    int c;
    while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        switch (c) {
        case 'j':
            b->json = true;
            break;
        case 's':
            b->smoke = true;
            break;
        case 'r':
            b->repeat = number(optarg);
            break;
        case 'o':
            b->only = optarg;
            break;
        case 'b':
            b->backend = optarg;
            break;
        default:
            help(name, what, c == 'h' ? EXIT_SUCCESS : 2);
        }
    }
    if (optind < argc) {
        help(name, what, 2);
    }
    if (b->repeat == 0) {
        b->repeat = b->smoke ? 2 : repeat;
    }
    report_init(&b->report, name, command_of(argc, argv), b->smoke);
    if (plans_on_double()) {
        report_left_out(
            &b->report, "a GPU",
            "the driver is a double that runs no such kernels: no figure says anything");
    }
}

int bench_end(struct bench *b)
{
    bool empty = b->report.count == 0;
    report_write(&b->report, b->json);
    report_finish(&b->report);
    if (empty) {
        (void)fprintf(stderr, "bench: nothing was measured\n");
    }
    return empty ? EXIT_FAILURE : EXIT_SUCCESS;
}

bool bench_wants(const struct bench *b, const char *part)
{
    return b->only == NULL || strstr(part, b->only) != NULL;
}

/* Ends the process if CUDA was chosen and is not there. gpud itself would wait for a device. */
static void need_device(const struct bench *b)
{
    const struct engine_kind *kind = NULL;
    const char *why = NULL;
    if (b->backend == NULL || strcmp(b->backend, "cuda") != 0) {
        return;
    }
    struct engine *e = engine_direct_open(b->backend, &kind, &why);
    if (e == NULL) {
        (void)fprintf(stderr, "bench: not measured: %s\n", why);
        exit(BENCH_SKIPPED);
    }
    kind->close(e);
}

void bench_gpud(const struct bench *b, struct gpud *g, const char *const *args)
{
    const char *all[GPUD_ARGS_MAX + 1] = {NULL};
    unsigned count = 0;
    need_device(b);
    if (b->backend != NULL) {
        all[count++] = "--backend";
        all[count++] = b->backend;
    }
    for (unsigned i = 0; args != NULL && args[i] != NULL && count < GPUD_ARGS_MAX; i++) {
        all[count++] = args[i];
    }
    gpud_start(g, all);
}
