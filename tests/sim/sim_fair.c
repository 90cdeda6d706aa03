/* A client that has one small job at a time, beside one that does all it can: its jobs end well,
 * and in a time that follows from the settings and from the work that was there before. */
#include <inttypes.h>

#include "daemon/front/model/job.h"
#include "daemon/front/model/window.h"
#include "tests/sim/sim.h"

#define HONEST   2u             /* its number */
#define RUNS     2u             /* of a job whose worker ends with it */
#define STRIKES  3u             /* convictions of a kernel, after which it does not run */
#define KERNELS  8u             /* of the sources of trouble */
#define END_NS   (2 * NS_PER_S) /* to see that a worker has to end, to end it and start another */
#define MESSAGES 4u

static bool waits(const struct sim_client *c)
{
    return c->open_count > 0 || c->jobs > 0;
}

void fair_ask(struct sim *s, struct chance *r)
{
    struct sim_client *c = &s->client[HONEST < s->clients ? HONEST : 0];
    if (c->state != CLIENT_ON || waits(c)) {
        return;
    }
    if (c->axpy == 0) {
        ask_find(s, c);
    } else {
        (void)special_bare(s, c, false, SUBMIT_BLOCK, r);
    }
}

/* The most time that a device spends with the job. */
static uint64_t cost_ns(const struct sim *s, const struct sim_job *j)
{
    uint64_t ns = 0;
    for (unsigned i = 0; i < RUNS; i++) {
        ns += 2 * exec_run_ns(s, j, i); /* and a pause between two kernels */
    }
    bool ends = j->loaded && j->limit_ns != 0; /* its own limit may end its worker */
    return ns + (ends ? END_NS : 0);
}

/* Who comes first goes first; each level of priority is worth some time of waiting. */
static bool goes_first(const struct sim_job *k, const struct sim_job *j)
{
    return k != j && k->sent_ns < j->sent_ns + PRIORITY_MAX * (uint64_t)PRIORITY_LEVEL_NS;
}

static uint64_t bound_ns(const struct sim *s, const struct sim_job *j)
{
    uint64_t limit = s->p.time_limit_ms * NS_PER_MS;
    uint64_t sum = cost_ns(s, j) + MESSAGES * s->p.wire_us * NS_PER_US + END_NS;
    uint64_t guilty = 0;
    uint64_t most = STRIKES * KERNELS + (s->p.window > 0 ? s->p.window : WINDOW_MAX);
    for (unsigned i = 0; i < s->jobs; i++) {
        const struct sim_job *k = s->job[i];
        bool open = k->outcome == OUTCOME_OPEN || k->ended_ns > j->sent_ns;
        if (goes_first(k, j) && open) {
            sum += k->guilty ? 0 : cost_ns(s, k);
            guilty += k->guilty;
        }
    }
    guilty = guilty < most ? guilty : most;
    return sum + guilty * RUNS * (limit + END_NS);
}

void fair_result(struct sim *s, struct sim_job *j)
{
    j->ended_ns = s->now_ns;
    if (s->p.special != WORLD_HOSTILE || !j->safe || j->client->index != HONEST ||
        j->outcome != OUTCOME_KNOWN) {
        return;
    }
    uint64_t bound = bound_ns(s, j);
    uint64_t took = s->now_ns - j->sent_ns;
    sim_log(s, "the other client's job took %" PRIu64 " us of %" PRIu64, took / NS_PER_US,
            bound / NS_PER_US);
    if (j->code != 0) {
        sim_fail(s, "fair: the job of a client beside a hostile one ends with %s",
                 err_name(j->code));
    }
    if (took > bound) {
        sim_fail(s,
                 "fair: the job of a client beside a hostile one takes %" PRIu64
                 " ms, at most %" PRIu64 " follow from what was before it",
                 took / NS_PER_MS, bound / NS_PER_MS);
    }
}
