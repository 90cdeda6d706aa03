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
