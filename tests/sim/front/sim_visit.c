/* Jobs that do not stay: a client's brief job, another client's job that is cancelled while it
 * waits for that, and after a pause a longer job of the first client, for which the other one has
 * to wait (WORLD_OVERRUNS). Some of these longer jobs are never seen to run. Where tenants have
 * workers of their own, a job on a device where its tenant may have nothing else, which is
 * cancelled while it may wait for a place there. */
#include "tests/sim/front/sim_visit.h"

#define BRIEF_NS  (20 * NS_PER_MS)
#define CANCEL_NS (2 * NS_PER_MS) /* after the job was sent */
#define COMES_NS  (BRIEF_NS / 2)  /* the other client's job, while the brief one runs */

/* device: from 1; 0: any. */
static struct sim_job *send_one(struct sim *s, struct sim_client *c, uint64_t run_ns,
                                uint64_t device)
{
    struct chance r = chance_of(s->now_ns, 5);
    const struct special_bare how = {.flags = SUBMIT_ASYNC, .run_ns = run_ns, .device = device};
    bool may = c->state == CLIENT_ON && !c->leaving && !c->said_bye && !s->settling && ask_room(c);
    if (may && c->axpy == 0) {
        ask_find(s, c);
    }
    return may && c->axpy != 0 ? special_bare(s, c, &how, &r) : NULL;
}

static void on_send(struct sim *s, const struct hap *h)
{
    (void)send_one(s, h->actor, h->a, 0);
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
    struct sim_job *j = send_one(s, h->actor, BRIEF_NS, 0);
    if (j != NULL) {
        sim_at(s, s->now_ns + CANCEL_NS, on_cancel, j, 0, 0);
    }
}

static void whim(struct sim *s, struct sim_client *c, struct chance *r)
{
    uint64_t cancel_ns = chance_spread(r, 50 * NS_PER_MS, 2 * NS_PER_S);
    struct sim_job *j = send_one(s, c, BRIEF_NS, 1 + chance_below(r, s->p.devices));
    if (j != NULL) {
        sim_at(s, s->now_ns + cancel_ns, on_cancel, j, 0, 0);
    }
}

void ask_visit(struct sim *s, struct sim_client *c, struct chance *r)
{
    if (s->p.special == WORLD_DOMAINS) {
        whim(s, c, r);
        return;
    }
    struct sim_client *other = &s->client[chance_below(r, s->clients)];
    uint64_t pause_ns = BRIEF_NS + chance_spread(r, 10 * NS_PER_MS, 500 * NS_PER_MS);
    uint64_t long_ns =
        chance_percent(r, 85) ? (600 + chance_below(r, 380)) * NS_PER_MS : GUILT_LONG_NS;
    struct chance more = chance_of(s->now_ns ^ c->index, 310);
    if (chance_percent(&more, 40)) {
        long_ns = VISIT_COPIES_NS;
        pause_ns += chance_below(&more, 500 * NS_PER_MS);
    }
    uint64_t at_ns = s->now_ns + pause_ns;
    (void)send_one(s, c, BRIEF_NS, 0);
    sim_at(s, s->now_ns + COMES_NS, on_visitor, other, 0, 0);
    sim_at(s, at_ns, on_send, c, long_ns, 0);
    sim_at(s, at_ns + chance_spread(r, NS_PER_MS, 300 * NS_PER_MS), on_send, other, BRIEF_NS, 0);
}
