#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/torture/campaign.h"

#define PROGRESS_NS (60 * SECOND)

static const char *const roles[] = {
#define X(name, text, program, own) text,
    ROLES(X)
#undef X
};

static const char *const kinds[] = {
#define X(name, text, number) text,
    KINDS(X)
#undef X
};

const char *role_name(enum role role)
{
    return roles[role];
}

const char *kind_name(enum kind kind)
{
    return kinds[kind];
}

void report_calls(const struct campaign *c)
{
    for (unsigned act = 0; act < ACT_COUNT; act++) {
        for (unsigned r = 0; r < ROLE_COUNT; r++) {
            bool any = false;
            for (unsigned k = 0; k < KIND_COUNT; k++) {
                uint64_t n = c->calls[act][r][k];
                if (n > 0) {
                    (void)printf("%s%s %llu", any ? ", " : "", kinds[k], (unsigned long long)n);
                    any = any || printf("%s", "") == 0;
                }
            }
            if (any) {
                (void)printf("   <- calls of the %s in act %s\n", roles[r],
                             act_name((enum act)act));
            }
        }
    }
    (void)fflush(stdout);
}

void report_plan(const struct campaign *c, uint64_t runs)
{
    (void)printf("torture: %llu runs are planned, slice %llu/%llu of all\n",
                 (unsigned long long)runs, (unsigned long long)c->o.slice,
                 (unsigned long long)c->o.slices);
    (void)fflush(stdout);
}

/* "OBJECT+0xOFFSET" lines as functions and places. */
static void print_trace(const char *trace)
{
    char line[512];
    char text[512];
    for (; *trace != '\0'; trace += strcspn(trace, "\n") + 1) {
        int size = (int)strcspn(trace, "+\n");
        if (trace[size] != '+' || memmem(trace, (size_t)size, "libtorture", 10) != NULL) {
            continue;
        }
        (void)snprintf(line, sizeof line, "addr2line -spfe '%.*s' %.*s", size, trace,
                       (int)strcspn(trace + size + 1, "\n"), trace + size + 1);
        FILE *f = popen(line, "re");
        if (f != NULL && fgets(text, sizeof text, f) != NULL) {
            (void)printf("   %s", text);
        }
        if (f != NULL) {
            (void)pclose(f);
        }
    }
}

static void print_log(const struct campaign *c)
{
    char line[512];
    (void)snprintf(line, sizeof line, "tail -n 25 '%s'", c->h.d.log);
    FILE *f = popen(line, "re");
    (void)printf("-- log\n");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        (void)printf("   %s", line);
    }
    if (f != NULL) {
        (void)pclose(f);
    }
}

void report_failure(struct campaign *c, const struct run *run, const char *problem)
{
    struct torture_page *p = c->h.page;
    char count[24] = "all";
    if (run->count != WHOLE_ACT) {
        (void)snprintf(count, sizeof count, "%llu", (unsigned long long)run->count);
    }
    (void)printf(
        "\nFAILED: %s\n-- repeat: test_torture --device %s --act %s --process %s --kind %s --n "
        "%llu --count %s\n",
        problem, c->o.device, act_name(run->act), roles[run->role], kinds[run->kind],
        (unsigned long long)run->n, count);
    if (atomic_load(&p->hit.count) > 0) {
        (void)printf("-- %s failed, in process %d\n", p->hit.call, p->hit.pid);
        (void)fflush(stdout);
        print_trace(p->hit.trace);
    }
    if (atomic_load(&p->crash.count) > 0) {
        (void)printf("-- the %s (%d) ended by signal %d\n", roles[p->crash.role], p->crash.pid,
                     p->crash.signal);
        (void)fflush(stdout);
        print_trace(p->crash.trace);
    }
    for (unsigned r = 0; r < ROLE_COUNT; r++) {
        if (p->end[r].status != 0) {
            (void)printf("-- the %s ended with status %d\n", roles[r], p->end[r].status);
            print_trace(p->end[r].trace);
        }
    }
    print_log(c);
}

static uint64_t all_runs(const struct campaign *c)
{
    uint64_t all = 0;
    for (unsigned r = 0; r < ROLE_COUNT; r++) {
        for (unsigned k = 0; k < KIND_COUNT; k++) {
            all += c->runs[r][k];
        }
    }
    return all;
}

void report_progress(struct campaign *c)
{
    uint64_t at_ns = now_ns();
    if (at_ns - c->told_ns > PROGRESS_NS) {
        c->told_ns = at_ns;
        (void)printf("torture: %llu runs in %llu s\n", (unsigned long long)all_runs(c),
                     (unsigned long long)((at_ns - c->begin_ns) / SECOND));
        (void)fflush(stdout);
    }
}

void report_end(const struct campaign *c)
{
    for (unsigned r = 0; r < ROLE_COUNT; r++) {
        for (unsigned k = 0; k < KIND_COUNT; k++) {
            if (c->runs[r][k] > 0) {
                (void)printf("%-9s %-10s %llu runs\n", roles[r], kinds[k],
                             (unsigned long long)c->runs[r][k]);
            }
        }
    }
    for (unsigned act = 0; act < ACT_COUNT; act++) {
        if (c->acts[act] > 0) {
            (void)printf("act %-8s %llu runs\n", act_name((enum act)act),
                         (unsigned long long)c->acts[act]);
        }
    }
    (void)printf("torture: %llu runs, %llu failed; %llu calls were not reached; workers ended %llu "
                 "times, launchers %llu\n",
                 (unsigned long long)all_runs(c), (unsigned long long)c->failures,
                 (unsigned long long)c->unreached, (unsigned long long)c->worker_ends,
                 (unsigned long long)c->launcher_ends);
    (void)fflush(stdout);
}
