/*
 * Policies at the size of a real card: public and generated traces, scaled to 4 … 192 GiB, with 3%
 * more memory than their peak. Measures the cost of an operation when a trace is repeated, and the
 * calls of the driver; the same with small objects beside each piece.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench/pool/parts.h"
#include "bench/pool/replay.h"

#define GIB    (UINT64_C(1) << 30)
#define ROUNDS 8u

struct scale {
    const struct settings *settings;
    struct report *report;
};

struct rounds {
    uint64_t first, last; /* calls of the driver */
    unsigned busy;        /* rounds up to the last one with calls */
};

/* Replays the trace eight times; the last round is timed if `ns` is not NULL. */
static struct rounds repeat(struct replay *r, const struct trace *t, uint64_t *ns)
{
    struct rounds n = {0, 0, 0};
    for (unsigned round = 0; round < ROUNDS; round++) {
        if (ns != NULL && round + 1 == ROUNDS) {
            replay_round_timed(r, t, ns);
        } else {
            replay_round(r, t);
        }
        n.last = replay_calls(r);
        n.busy = n.last > 0 ? round + 1 : n.busy;
        n.first = round == 0 ? n.last : n.first;
    }
    return n;
}

static void at_rest(struct report *rep, const char *name, enum policy_kind kind,
                    const struct trace *t, uint64_t gib)
{
    struct replay r;
    uint64_t *ns = bench_calloc(t->count, sizeof *ns);
    replay_init(&r, kind, gib * GIB / 100 * 103, 1, 0, t->buffers);
    struct rounds n = repeat(&r, t, ns);
    const char *policy = r.policy.name;
    report_add(rep, "scale", name, policy, "p50_ns", (double)replay_percentile(ns, t->count, 50));
    report_add(rep, "scale", name, policy, "p99_ns", (double)replay_percentile(ns, t->count, 99));
    if (r.policy.calls != NULL) {
        report_add(rep, "scale", name, policy, "first_round_calls_a_gib",
                   (double)n.first / (double)gib);
        report_add(rep, "scale", name, policy, "rounds_with_calls", n.busy);
        report_add(rep, "scale", name, policy, "last_round_calls", (double)n.last);
    }
    report_add(rep, "scale", name, policy, "refused", (double)r.refused);
    replay_finish(&r);
    free(ns);
}

#define SMALL 24u /* objects beside each piece */

/* Each piece comes with objects of 256 bytes to 64 KiB, which end with it. */
static void add_small(struct trace *ret_small, const struct trace *t)
{
    struct load l;
    uint64_t *from = bench_calloc(t->buffers, sizeof *from);
    uint64_t *size = bench_calloc(t->buffers, sizeof *size);
    load_seed(&l, 7);
    trace_begin(ret_small);
    for (size_t i = 0; i < t->count; i++) {
        const struct event *v = &t->event[i];
        if (v->size != 0) {
            from[v->id] = v->time;
            size[v->id] = v->size;
            continue;
        }
        trace_add(ret_small, from[v->id], v->time, size[v->id]);
        for (unsigned n = 0; n < SMALL; n++) {
            trace_add(ret_small, from[v->id], v->time, load_log_uniform(&l, 256, 65536));
        }
    }
    trace_end(ret_small);
    free(from);
    free(size);
}

static void with_small(struct report *rep, const char *name, enum policy_kind kind,
                       const struct trace *t, uint64_t limit)
{
    struct replay r;
    replay_init(&r, kind, limit, 1, 0, t->buffers);
    struct rounds n = repeat(&r, t, NULL);
    report_add(rep, "scale", name, r.policy.name, "refused", (double)r.refused);
    if (r.policy.calls != NULL) {
        report_add(rep, "scale", name, r.policy.name, "rounds_with_calls", n.busy);
        report_add(rep, "scale", name, r.policy.name, "last_round_calls", (double)n.last);
    }
    replay_finish(&r);
}

static void one_trace(void *user, const char *name, struct trace *t)
{
    static const uint64_t sizes[] = {4, 16, 64, 128, 192};
    const struct scale *s = user;
    unsigned count = s->settings->smoke ? 1 : sizeof sizes / sizeof sizes[0];
    char row[40];
    struct trace small;
    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(row, sizeof row, "%.24s, %u GiB", name, (unsigned)sizes[i]);
        trace_scale(t, sizes[i] * GIB);
        for (enum policy_kind kind = POLICY_POOL_MOVING; kind <= POLICY_EXPANDABLE; kind++) {
            at_rest(s->report, row, kind, t, sizes[i]);
        }
    }
    trace_scale(t, s->settings->gib * GIB);
    add_small(&small, t);
    (void)snprintf(row, sizeof row, "%.24s, with small", name);
    for (enum policy_kind kind = POLICY_POOL_MOVING; kind <= POLICY_EXPANDABLE; kind++) {
        with_small(s->report, row, kind, &small, replay_limit_97(t));
    }
    trace_finish(&small);
}

void part_scale(const struct settings *s, struct report *rep)
{
    struct scale scale = {s, rep};
    replay_traces(s->traces, s->smoke ? 1 : 3, one_trace, &scale);
}
