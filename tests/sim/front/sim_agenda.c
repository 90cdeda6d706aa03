#include "tests/sim/front/sim.h"

void sim_at(struct sim *s, uint64_t at_ns, void (*run)(struct sim *s, const struct hap *h),
            void *actor, uint64_t a, uint64_t b)
{
    const struct hap h = {.at_ns = at_ns > s->now_ns ? at_ns : s->now_ns,
                          .run = (void (*)(void))run,
                          .actor = actor,
                          .a = a,
                          .b = b};
    haps_add(&s->agenda, h);
}

uint64_t sim_next_ns(const struct sim *s)
{
    return haps_next_ns(&s->agenda);
}

void sim_next(struct sim *s)
{
    const struct hap h = haps_take(&s->agenda);
    ((void (*)(struct sim * s, const struct hap *h)) h.run)(s, &h);
}

static bool is_worker(const struct sim *s, const void *actor)
{
    unsigned i = 0;
    while (i < s->workers && (s->worker[i] != actor || s->worker[i]->state == WORKER_GONE)) {
        i++;
    }
    return actor != NULL && i < s->workers;
}

/* Of two at the same time the first remains the first. */
void agenda_delay_workers(struct sim *s, uint64_t ns)
{
    struct haps before = s->agenda;
    s->agenda = (struct haps){.count = 0};
    while (before.count > 0) {
        struct hap h = haps_take(&before);
        h.at_ns += is_worker(s, h.actor) ? ns : 0;
        haps_add(&s->agenda, h);
    }
    haps_finish(&before);
}
