/*
 * All of the memory in large requests: how many calls of the driver that takes when nothing is
 * mapped yet, how long one request takes, and how many handles there are then.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench/pool/parts.h"
#include "bench/pool/policy.h"
#include "bench/pool/source.h"
#include "common/clock.h"

#define GIB   (UINT64_C(1) << 30)
#define LIMIT (64 * GIB)

static void add_figures(struct report *r, const char *name, const struct policy *p, uint64_t size)
{
    uint64_t bytes = 0;
    uint64_t longest = 0;
    for (bool good = true; good;) {
        struct pool_piece piece;
        uint64_t from = clock_now_ns();
        good = p->alloc(p->self, size, 0, &piece);
        uint64_t took = clock_now_ns() - from;
        bytes += good ? size : 0;
        longest = took > longest ? took : longest;
    }
    report_add(r, "first", name, p->name, "gib", (double)bytes / GIB);
    report_add(r, "first", name, p->name, "calls_a_gib",
               (double)p->calls(p->self) * GIB / (double)bytes);
    report_add(r, "first", name, p->name, "longest_us", (double)longest / 1000);
}

static void one_size(struct report *r, uint64_t size)
{
    static const enum policy_kind others[] = {POLICY_CACHING, POLICY_EXPANDABLE};
    const struct policy_options o = {.limit = LIMIT, .limit_others = LIMIT};
    char name[40];
    struct bench_counts counts = {0, 0};
    struct pool_source source;
    struct policy p;
    (void)snprintf(name, sizeof name, "64 GiB in pieces of %u GiB", (unsigned)(size / GIB));
    bench_source_counting(&counts, &source);
    policy_pool(&source, LIMIT, 1, &p);
    add_figures(r, name, &p, size);
    report_add(r, "first", name, p.name, "handles", (double)counts.handles);
    report_add(r, "first", name, p.name, "largest_handle_mib", (double)(counts.largest >> 20));
    p.destroy(p.self);
    for (unsigned i = 0; i < sizeof others / sizeof others[0]; i++) {
        policy_create(others[i], &o, &p);
        add_figures(r, name, &p, size);
        p.destroy(p.self);
    }
}

void part_first(const struct settings *s, struct report *r)
{
    (void)s;
    one_size(r, GIB);
    one_size(r, 10 * GIB);
}
