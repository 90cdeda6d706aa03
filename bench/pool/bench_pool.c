/* bench_pool: compares the device-memory pool with other allocation policies; README.md explains
 * the figures. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/pool/parts.h"
#include "bench/pool/policy.h"

static const struct part {
    const char *name;
    void (*run)(const struct settings *s, struct report *r);
} parts[] = {
    {"latency", part_latency}, {"pairs", part_pairs},         {"tight", part_tight},
    {"scale", part_scale},     {"streams", part_streams},     {"jitter", part_jitter},
    {"models", part_models},   {"first", part_first},         {"oom", part_oom},
    {"moves", part_moves},     {"snapshots", part_snapshots},
};

#define PARTS (sizeof parts / sizeof parts[0])

static void usage(FILE *to)
{
    (void)fputs("usage: bench_pool [--json] [--smoke] [--only PART] [--traces FOLDER] [--gib N]\n"
                "                  [--live N] [--samples N] [--pairs N] [--churn N]\n"
                "       bench_pool [--json] --soak N\n"
                "parts: latency pairs tight scale streams jitter models first oom moves snapshots\n"
                "  --json           one JSON object instead of a table\n"
                "  --smoke          a second or two: shows that it runs, measures nothing\n"
                "  --traces FOLDER  also replays its *.csv (id,lower,upper,size)\n"
                "  --gib N          peak to which traces are scaled (16)\n"
                "  --live N         most pieces alive in the latency curve (1000000)\n"
                "  --samples N      operations timed for each point of the curve (200000)\n"
                "  --pairs N        allocations and frees in a row (2000000)\n"
                "  --churn N        operations of a churn (2000000)\n"
                "  --soak N         only this: N operations; fails if memory creeps up\n",
                to);
}

static uint64_t number(const char *text)
{
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    if (end == text || *end != '\0' || n == 0) {
        (void)fprintf(stderr, "bench_pool: %s is no number above 0\n", text);
        exit(2);
    }
    return n;
}

struct choice {
    struct settings settings;
    const char *only;
    uint64_t soak; /* operations; 0: no soak test */
    bool json;
};

static void choose(int argc, char **argv, struct choice *c)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'},          {"smoke", no_argument, NULL, 'q'},
        {"only", required_argument, NULL, 'o'},    {"traces", required_argument, NULL, 't'},
        {"gib", required_argument, NULL, 'g'},     {"live", required_argument, NULL, 'l'},
        {"samples", required_argument, NULL, 's'}, {"pairs", required_argument, NULL, 'p'},
        {"churn", required_argument, NULL, 'c'},   {"help", no_argument, NULL, 'h'},
        {"soak", required_argument, NULL, 'k'},    {NULL, 0, NULL, 0}};
    struct settings *s = &c->settings;
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (o) {
        case 'j':
            c->json = true;
            break;
        case 'q':
            *s = (struct settings){.live_max = 1000,
                                   .samples = 1000,
                                   .pairs = 1000,
                                   .churn = 2000,
                                   .gib = 1,
                                   .smoke = true,
                                   .traces = s->traces};
            break;
        case 'o':
            c->only = optarg;
            break;
        case 't':
            s->traces = optarg;
            break;
        case 'g':
            s->gib = number(optarg);
            break;
        case 'l':
            s->live_max = number(optarg);
            break;
        case 's':
            s->samples = number(optarg);
            break;
        case 'p':
            s->pairs = number(optarg);
            break;
        case 'k':
            c->soak = number(optarg);
            break;
        case 'c':
            s->churn = number(optarg);
            break;
        default:
            usage(o == 'h' ? stdout : stderr);
            exit(o == 'h' ? 0 : 2);
        }
    }
}

int main(int argc, char **argv)
{
    static struct report report;
    struct choice c = {
        .settings = {
            .live_max = 1000000, .samples = 200000, .pairs = 2000000, .churn = 2000000, .gib = 16}};
    bool any = false;
    choose(argc, argv, &c);
    if (c.soak != 0) {
        bool good = soak(c.soak, &report);
        (c.json ? report_json : report_table)(&report);
        return good ? 0 : 1;
    }
    for (size_t i = 0; i < PARTS; i++) {
        if (c.only == NULL || strcmp(c.only, parts[i].name) == 0) {
            parts[i].run(&c.settings, &report);
            any = true;
        }
    }
    if (!any) {
        (void)fprintf(stderr, "bench_pool: there is no part %s\n", c.only);
        return 2;
    }
    (c.json ? report_json : report_table)(&report);
    return 0;
}
