/* A client that has one small job at a time, beside one that does all it can: its jobs end well,
 * and in a time that follows from the settings, however much work of the other one is there. */
#include <inttypes.h>
#include <stdlib.h>

#include "daemon/front/model/job.h"
#include "daemon/front/model/window.h"
#include "tests/sim/front/sim.h"

#define HONEST   2u              /* its number */
#define RUNS     2u              /* of a job whose worker ends with it */
#define STRIKES  3u              /* convictions of a kernel, after which it does not run */
#define KERNELS  8u              /* of the sources of trouble */
#define END_NS   (2 * NS_PER_S)  /* to see that a worker has to end, to end it and start another */
#define EACH_NS  (NS_PER_MS / 2) /* to send a job, and to report its end */
#define TURNS_NS (100 * NS_PER_MS) /* of the loop, and messages of workers */
#define MESSAGES 4u

static bool waits(const struct sim_client *c)
{
    return c->open_count > 0 || c->jobs > 0;
}

void fair_ask(struct sim *s, struct chance *r)
{
    struct sim_client *c = &s->client[FAIR_CLIENT < s->clients ? FAIR_CLIENT : 0];
    if (c->state != CLIENT_ON || waits(c)) {
        return;
    }
    if (c->axpy == 0) {
        ask_find(s, c);
    } else {
        const struct special_bare how = {.flags = SUBMIT_BLOCK};
        (void)special_bare(s, c, &how, r);
    }
}

/* The time that a device needs for the job, if it has no other. */
static uint64_t cost_ns(const struct sim *s, const struct sim_job *j, bool again)
{
    unsigned runs = again ? RUNS : 1;
    uint64_t ns = 0;
    for (unsigned i = 0; i < runs; i++) {
        ns += exec_run_ns(s, j, i);
    }
    return runs * EACH_NS + (s->p.pauses > 0 ? 2 * ns : ns);
}

static int by_cost(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/* The other client has a part of the devices: the job waits for jobs in flight, for as many that go
 * while their costs are not known yet, and until the other one has had as much as its own last job
 * took. The greatest of the open jobs are taken for these. Where workers end meanwhile, jobs run
 * once more, and each end takes the time limit that a kernel passes. There are no more such ends
 * than convictions of kernels, and jobs in flight when the last kernel is banned. */
static uint64_t bound_ns(const struct sim *s, const struct sim_job *j)
{
    uint64_t window = s->p.window > 0 ? s->p.window : WINDOW_MAX;
    uint64_t sum = cost_ns(s, j, true) + MESSAGES * s->p.wire_us * NS_PER_US + TURNS_NS;
    uint64_t most = STRIKES * KERNELS + window;
    uint64_t ends = s->ends - j->ends;
    uint64_t *cost = calloc(s->jobs + 1, sizeof *cost);
    size_t count = 0;
    uint64_t own = 0;
    if (cost == NULL) {
        abort();
    }
    ends = ends < RUNS * most ? ends : RUNS * most;
    for (unsigned i = 0; i < s->jobs; i++) {
        const struct sim_job *k = s->job[i];
        /* the device may go on with a job whose client has its answer */
        bool open = k->outcome == OUTCOME_OPEN || k->ended_ns + exec_run_ns(s, k, 0) > j->sent_ns;
        uint64_t ns = cost_ns(s, k, ends > 0);
        cost[count] = ns;
        count += open && k->client != j->client;
        own = k->client == j->client && k != j && ns > own ? ns : own;
    }
    qsort(cost, count, sizeof *cost, by_cost);
    for (size_t i = 0; i < count && i < 2 * window * s->p.devices + 1; i++) {
        sum += cost[i];
    }
    free(cost);
    return sum + own + ends * (s->p.time_limit_ms * NS_PER_MS + END_NS);
}

void fair_result(struct sim *s, struct sim_job *j)
{
    j->ended_ns = s->now_ns;
    if (s->p.special != WORLD_HOSTILE || !j->safe || j->client->index != FAIR_CLIENT ||
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
