#include "bench/common/sides.h"

unsigned sides_open(struct side sides[2], const struct gpud *g, struct report *r)
{
    const char *why = NULL;
    sides[0] = (struct side){.kind = &engine_gpud, .name = "gpud"};
    sides[1] = (struct side){.name = g->backend};
    sides[0].engine = engine_gpud.open(g->url, &why);
    sides[1].engine = engine_direct_open(g->backend, &sides[1].kind, &why);
    if (sides[1].engine == NULL) {
        report_left_out(r, "in process", why);
    }
    return sides[1].engine != NULL ? 2 : 1;
}

void sides_close(struct side *sides, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        sides[i].kind->close(sides[i].engine);
    }
}
