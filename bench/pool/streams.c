/*
 * Are requests refused because freed memory is not complete yet? Traces of one stream and of four,
 * with frees that complete at once, or 8 and 32 frees of their stream later; memory for 100/97 and
 * for 125% of the peak.
 */
#include <stdio.h>

#include "bench/pool/parts.h"
#include "bench/pool/replay.h"

#define GIB    (UINT64_C(1) << 30)
#define ROUNDS 8u

struct streams {
    const struct settings *settings;
    struct report *report;
};

static void one_case(struct report *rep, const char *name, enum policy_kind kind,
                     const struct trace *t, unsigned streams, uint64_t behind)
{
    for (unsigned ample = 0; ample < 2; ample++) {
        struct replay r;
        uint64_t limit = ample != 0 ? replay_limit_125(t) : replay_limit_97(t);
        replay_init(&r, kind, limit, streams, behind, t->buffers);
        for (unsigned round = 0; round < ROUNDS; round++) {
            replay_round(&r, t);
        }
        const char *policy = r.policy.name;
        report_add(rep, "streams", name, policy, ample != 0 ? "refused_125" : "refused_97",
                   (double)r.refused);
        if (r.policy.calls != NULL) {
            report_add(rep, "streams", name, policy,
                       ample != 0 ? "last_round_calls_125" : "last_round_calls_97",
                       (double)replay_calls(&r));
            report_add(rep, "streams", name, policy, ample != 0 ? "waits_125" : "waits_97",
                       (double)replay_waits(&r));
        }
        replay_finish(&r);
    }
}

static void one_trace(void *user, const char *name, struct trace *t)
{
    static const uint64_t behind[] = {0, 8, 32};
    const struct streams *s = user;
    trace_scale(t, s->settings->gib * GIB);
    for (unsigned streams = 1; streams <= POLICY_STREAMS; streams += POLICY_STREAMS - 1) {
        for (unsigned i = 0; i < sizeof behind / sizeof behind[0]; i++) {
            char row[40];
            (void)snprintf(row, sizeof row, "%.12s, %u behind, %u stream%s", name,
                           (unsigned)behind[i], streams, streams == 1 ? "" : "s");
            for (enum policy_kind kind = POLICY_POOL_MOVING; kind <= POLICY_EXPANDABLE; kind++) {
                one_case(s->report, row, kind, t, streams, behind[i]);
            }
        }
    }
}

void part_streams(const struct settings *s, struct report *rep)
{
    struct streams streams = {s, rep};
    replay_traces(s->traces, s->smoke ? 1 : 3, one_trace, &streams);
}
