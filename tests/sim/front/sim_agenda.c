#include <stdlib.h>

#include "tests/sim/front/sim.h"

static bool before(const struct hap *a, const struct hap *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

void sim_at(struct sim *s, uint64_t at_ns, void (*run)(struct sim *s, const struct hap *h),
            void *actor, uint64_t a, uint64_t b)
{
    struct agenda_of *g = &s->agenda;
    if (g->count == g->room) {
        g->room = g->room > 0 ? 2 * g->room : 1024;
        g->hap = realloc(g->hap, g->room * sizeof *g->hap);
    }
    struct hap h = {.at_ns = at_ns > s->now_ns ? at_ns : s->now_ns,
                    .order = g->order++,
                    .run = run,
                    .actor = actor,
                    .a = a,
                    .b = b};
    size_t i = g->count++;
    for (; i > 0 && before(&h, &g->hap[(i - 1) / 2]); i = (i - 1) / 2) {
        g->hap[i] = g->hap[(i - 1) / 2];
    }
    g->hap[i] = h;
}

uint64_t sim_next_ns(const struct sim *s)
{
    return s->agenda.count > 0 ? s->agenda.hap[0].at_ns : NS_NEVER;
}

struct hap sim_take(struct sim *s)
{
    struct agenda_of *g = &s->agenda;
    struct hap first = g->hap[0];
    struct hap last = g->hap[--g->count];
    size_t i = 0;
    for (size_t next = 1; next < g->count; next = 2 * i + 1) {
        next += next + 1 < g->count && before(&g->hap[next + 1], &g->hap[next]);
        if (!before(&g->hap[next], &last)) {
            break;
        }
        g->hap[i] = g->hap[next];
        i = next;
    }
    g->hap[i] = last;
    return first;
}
