#include "tests/sim/haps.h"

#include <stdbool.h>
#include <stdlib.h>

#include "common/clock.h"

static bool before(const struct hap *a, const struct hap *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

void haps_add(struct haps *g, struct hap h)
{
    if (g->count == g->room) {
        g->room = g->room > 0 ? 2 * g->room : 1024;
        g->hap = realloc(g->hap, g->room * sizeof *g->hap);
    }
    h.order = g->order++;
    size_t i = g->count++;
    for (; i > 0 && before(&h, &g->hap[(i - 1) / 2]); i = (i - 1) / 2) {
        g->hap[i] = g->hap[(i - 1) / 2];
    }
    g->hap[i] = h;
}

uint64_t haps_next_ns(const struct haps *g)
{
    return g->count > 0 ? g->hap[0].at_ns : NS_NEVER;
}

struct hap haps_take(struct haps *g)
{
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

void haps_finish(struct haps *g)
{
    free(g->hap);
    *g = (struct haps){.count = 0};
}
