#include "daemon/worker/memory/releases.h"

#include <stddef.h>

#include "daemon/worker/run/completion.h"

void releases_init(struct releases *r, bool (*idle)(void *data), void *data,
                   const struct completion *running)
{
    *r = (struct releases){.last = &r->first, .idle = idle, .data = data, .running = running};
}

static void release_first(struct releases *r)
{
    struct release *x = r->first;
    r->first = x->next;
    r->bytes -= x->bytes;
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

void release_put(struct releases *r, struct release *x, uint64_t bytes, release_fn run, void *item)
{
    if (r == NULL || r->idle(r->data)) {
        run(item);
        return;
    }
    *x = (struct release){.run = run, .item = item, .bytes = bytes, .since_ns = clock_now_ns()};
    r->bytes += bytes;
    *r->last = x;
    r->last = &x->next;
}

static bool is_due(const struct releases *r, uint64_t now_ns)
{
    const struct job *oldest = completion_oldest(r->running);
    bool brief = oldest == NULL || now_ns - oldest->added_ns < RELEASES_WAIT_NS;
    return r->bytes > RELEASES_BYTES || (brief && now_ns - r->first->since_ns >= RELEASES_NS);
}

bool releases_soon(const struct releases *r)
{
    const struct job *oldest = completion_oldest(r->running);
    return oldest == NULL || clock_now_ns() - oldest->added_ns < RELEASES_NS;
}

void releases_turn(struct releases *r)
{
    if (r->first == NULL) {
        return;
    }
    bool idle = r->idle(r->data);
    uint64_t now_ns = clock_now_ns();
    while (r->first != NULL && (idle || is_due(r, now_ns))) {
        release_first(r);
    }
}
