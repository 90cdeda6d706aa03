#include "daemon/worker/releases.h"

#include <stddef.h>

void releases_init(struct releases *r, bool (*idle)(void *data), void *data)
{
    *r = (struct releases){.last = &r->first, .idle = idle, .data = data};
}

static void release_first(struct releases *r)
{
    struct release *x = r->first;
    r->first = x->next;
    if (r->first == NULL) {
        r->last = &r->first;
    }
    x->run(x->item);
}

void releases_finish(struct releases *r)
{
    while (r->first != NULL) {
        release_first(r);
    }
}

void release_put(struct releases *r, struct release *x, release_fn run, void *item)
{
    if (r == NULL || r->idle(r->data)) {
        run(item);
        return;
    }
    *x = (struct release){.run = run, .item = item, .since_ns = clock_now_ns()};
    *r->last = x;
    r->last = &x->next;
}

void releases_turn(struct releases *r)
{
    if (r->first == NULL) {
        return;
    }
    bool idle = r->idle(r->data);
    uint64_t now_ns = clock_now_ns();
    while (r->first != NULL && (idle || now_ns - r->first->since_ns >= RELEASES_NS)) {
        release_first(r);
    }
}
