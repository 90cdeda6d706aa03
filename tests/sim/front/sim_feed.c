/* What the tenants of sim_load.h send. */
#include "tests/sim/front/sim_load.h"

static void send_one(struct sim *s, struct sim_client *c, struct chance *r)
{
    const struct load_client *t = &s->load->client[c->index];
    unsigned kind = (unsigned)chance_below(r, t->mix);
    struct special_bare how = {.elements = LOAD_LEAST << kind, .flags = SUBMIT_ASYNC};
    unsigned wish = t->wish != CLASS_USUAL ? t->wish : CLASS_INTERACTIVE;
    how.job_class = t->wish;
    how.kind = kind;
    how.run_ns = load_draw_ns(s, c->index, kind, r);
    how.flow = 1 + load_flow(s, c->index, wish > t->first_class ? wish : t->first_class);
    (void)special_bare(s, c, &how, r);
}

static void feed(struct sim *s, struct sim_client *c, struct chance *r)
{
    if (c->state != CLIENT_ON || c->leaving || c->said_bye || s->settling) {
        return;
    }
    if (c->axpy == 0) {
        ask_find(s, c);
    }
    while (c->axpy != 0 && s->load->jobs < LOAD_JOBS &&
           c->jobs < s->load->client[c->index].target && ask_room(c)) {
        s->load->jobs++;
        send_one(s, c, r);
    }
}

/* Mostly a tenant goes on as it does. */
void feed_event(struct sim *s, struct sim_client *c, struct chance *r)
{
    struct load_client *t;
    if (!load_is(s) || c->index >= LOAD_CLIENTS) {
        return;
    }
    t = &s->load->client[c->index];
    unsigned n = (unsigned)chance_below(r, 100);
    unsigned many = 12 + 2 * (unsigned)s->p.streams + (unsigned)chance_below(r, 40);
    if (load_lean(s)) {
        t->target = c->index == LEAN_ONE ? 1 : c->index == LEAN_LATE ? n % 3 : 8;
        t->mix = LOAD_KINDS;
    } else if (t->mix == 0 || n < 30) {
        n = (unsigned)chance_below(r, 100);
        t->target = n < 15 ? 0 : n < 30 ? 1 : n < 38 ? 3 : many;
        t->mix = 1 + (unsigned)chance_below(r, LOAD_KINDS);
    }
    if (s->load->bursts) {
        t->target = c->jobs == 0 ? 2 + n % 16 : 0;
    }
    feed(s, c, r);
}

void feed_result(struct sim *s, const struct sim_job *j)
{
    struct chance r = chance_of(j->r, 11);
    bool late = load_lean(s) && j->client->index == LEAN_LATE;
    if (load_is(s) && j->client->index < LOAD_CLIENTS && !late && !s->load->bursts) {
        feed(s, j->client, &r);
    }
}
