#include "daemon/worker/memory/releases.h"

#include <stddef.h>

void releases_init(struct releases *r, releases_idle_fn idle, releases_since_fn since, void *data)
{
    *r = (struct releases){.last = &r->first, .idle = idle, .since = since, .data = data};
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

void release_again(struct releases *r, struct release *x, uint64_t bytes, release_fn run,
                   void *item)
{
    if (r == NULL || r->idle(r->data)) {
        run(item);
        return;
    }
    uint64_t since_ns = x->since_ns != 0 ? x->since_ns : clock_now_ns();
    *x = (struct release){
        .run = run, .item = item, .bytes = bytes, .since_ns = since_ns, .next = r->first};
    r->bytes += bytes;
    r->last = r->first == NULL ? &x->next : r->last;
    r->first = x;
}

static bool is_due(const struct releases *r, uint64_t now_ns)
{
    uint64_t since_ns = r->since(r->data);
    bool brief = since_ns == 0 || now_ns - since_ns < RELEASES_WAIT_NS;
    return r->bytes > RELEASES_BYTES || (brief && now_ns - r->first->since_ns >= RELEASES_NS);
}

bool releases_soon(const struct releases *r)
{
    uint64_t since_ns = r->since(r->data);
    return since_ns == 0 || clock_now_ns() - since_ns < RELEASES_NS;
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
