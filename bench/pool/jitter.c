/*
 * Traces that nearly repeat themselves: in each round each size is up to 2% smaller or larger, at
 * random. The memory is fixed: 100/97 or 125% of the highest peak of all rounds.
 */
#include <stdlib.h>

#include "bench/pool/parts.h"
#include "bench/pool/replay.h"

#define GIB    (UINT64_C(1) << 30)
#define ROUNDS 32u
#define FEWER  4u     /* rounds of a smoke run */
#define PARTS  20000u /* a size varies in steps of a part of this many, … */
#define VARY   400u   /* … by up to so many parts up and down */

struct jitter {
    const struct settings *settings;
    struct report *report;
};

/* The sizes of one round; the same for each policy. */
static void round_make(struct trace *ret_round, const struct trace *t, unsigned round)
{
    struct load l;
    load_seed(&l, round);
    trace_begin(ret_round);
    *ret_round =
        (struct trace){.event = ret_round->event, .count = t->count, .buffers = t->buffers};
    for (size_t i = 0; i < t->count; i++) {
        struct event v = t->event[i];
        v.size = v.size / PARTS * (PARTS - VARY + load_random(&l, 2 * VARY + 1)) + v.size % PARTS;
        ret_round->event[i] = v;
    }
    trace_end(ret_round);
}

static void one_policy(struct report *rep, const char *name, enum policy_kind kind,
                       const struct trace *rounds, unsigned count, bool ample)
{
    uint64_t calls = 0;
    uint64_t late = 0; /* calls in the last quarter of the rounds */
    struct trace peak = {.peak = 0};
    struct replay r;
    uint64_t *ns = bench_calloc(rounds[0].count, sizeof *ns);
    for (unsigned i = 0; i < count; i++) {
        peak.peak = rounds[i].peak > peak.peak ? rounds[i].peak : peak.peak;
    }
    replay_init(&r, kind, ample ? replay_limit_125(&peak) : replay_limit_97(&peak), 1, 0,
                rounds[0].buffers);
    for (unsigned i = 0; i < count; i++) {
        replay_round_timed(&r, &rounds[i], ns);
        calls += i == 0 ? 0 : replay_calls(&r);
        late += i < count - count / 4 ? 0 : replay_calls(&r);
    }
    double events = (double)rounds[0].count;
    const char *policy = r.policy.name;
    report_add(rep, "jitter", name, policy, ample ? "refused_125" : "refused_97",
               (double)r.refused);
    if (r.policy.calls != NULL) {
        report_add(rep, "jitter", name, policy, ample ? "calls_an_event_125" : "calls_an_event_97",
                   (double)calls / events / (count - 1));
        report_add(rep, "jitter", name, policy,
                   ample ? "late_calls_an_event_125" : "late_calls_an_event_97",
                   (double)late / events * 4 / count);
    }
    report_add(rep, "jitter", name, policy, ample ? "p50_ns_125" : "p50_ns_97",
               (double)replay_percentile(ns, rounds[0].count, 50));
    report_add(rep, "jitter", name, policy, ample ? "p99_ns_125" : "p99_ns_97",
               (double)replay_percentile(ns, rounds[0].count, 99));
    replay_finish(&r);
    free(ns);
}

static void one_trace(void *user, const char *name, struct trace *t)
{
    const struct jitter *j = user;
    unsigned count = j->settings->smoke ? FEWER : ROUNDS;
    struct trace round[ROUNDS];
    trace_scale(t, j->settings->gib * GIB);
    for (unsigned i = 0; i < count; i++) {
        round_make(&round[i], t, i);
    }
    for (enum policy_kind kind = POLICY_POOL_MOVING; kind <= POLICY_EXPANDABLE; kind++) {
        one_policy(j->report, name, kind, round, count, false);
        one_policy(j->report, name, kind, round, count, true);
    }
    for (unsigned i = 0; i < count; i++) {
        trace_finish(&round[i]);
    }
}

void part_jitter(const struct settings *s, struct report *rep)
{
    struct jitter jitter = {s, rep};
    replay_traces(s->traces, s->smoke ? 1 : 3, one_trace, &jitter);
}
