/* Jobs that do not stay: a client's brief job, another client's job that is cancelled while it
 * waits for that, and after a pause a longer job of the first client, for which the other one has
 * to wait (WORLD_OVERRUNS). */
#include "tests/sim/front/sim.h"

#define BRIEF_NS  (20 * NS_PER_MS)
#define CANCEL_NS (2 * NS_PER_MS) /* after the job was sent */
#define COMES_NS  (BRIEF_NS / 2)  /* the other client's job, while the brief one runs */

static struct sim_job *send_one(struct sim *s, struct sim_client *c, uint64_t run_ns)
{
    struct chance r = chance_of(s->now_ns, 5);
    const struct special_bare how = {.flags = SUBMIT_ASYNC, .run_ns = run_ns};
    bool may = c->state == CLIENT_ON && !c->leaving && !c->said_bye && !s->settling && ask_room(c);
    if (may && c->axpy == 0) {
        ask_find(s, c);
    }
    return may && c->axpy != 0 ? special_bare(s, c, &how, &r) : NULL;
}

static void on_send(struct sim *s, const struct hap *h)
{
    (void)send_one(s, h->actor, h->a);
}

static void on_cancel(struct sim *s, const struct hap *h)
{
    struct sim_job *j = h->actor;
    if (j->client->state == CLIENT_ON && j->life == j->client->lives &&
        j->outcome == OUTCOME_OPEN) {
        ask_cancel_of(s, j, false);
    }
}

static void on_visitor(struct sim *s, const struct hap *h)
{
    struct sim_job *j = send_one(s, h->actor, BRIEF_NS);
    if (j != NULL) {
        sim_at(s, s->now_ns + CANCEL_NS, on_cancel, j, 0, 0);
    }
}

void ask_visit(struct sim *s, struct sim_client *c, struct chance *r)
{
    struct sim_client *other = &s->client[chance_below(r, s->clients)];
    uint64_t pause_ns = BRIEF_NS + chance_spread(r, 10 * NS_PER_MS, 500 * NS_PER_MS);
    uint64_t long_ns =
        chance_percent(r, 85) ? (600 + chance_below(r, 380)) * NS_PER_MS : GUILT_LONG_NS;
    uint64_t at_ns = s->now_ns + pause_ns;
    (void)send_one(s, c, BRIEF_NS);
    sim_at(s, s->now_ns + COMES_NS, on_visitor, other, 0, 0);
    sim_at(s, at_ns, on_send, c, long_ns, 0);
    sim_at(s, at_ns + chance_spread(r, NS_PER_MS, 300 * NS_PER_MS), on_send, other, BRIEF_NS, 0);
}
