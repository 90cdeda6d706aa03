#include "bench/pool/replay.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"

void replay_init(struct replay *r, enum policy_kind kind, uint64_t limit, unsigned streams,
                 uint64_t behind, uint32_t buffers)
{
    const struct policy_options o = {.limit = limit, .limit_others = limit, .streams = streams};
    *r = (struct replay){.streams = streams,
                         .behind = behind,
                         .piece = bench_calloc(buffers, sizeof *r->piece),
                         .live = bench_calloc(buffers, sizeof *r->live)};
    for (unsigned s = 0; s < streams; s++) {
        r->pending[s] = bench_calloc(behind + 1, sizeof *r->pending[s]);
    }
    policy_create(kind, &o, &r->policy);
}

void replay_finish(struct replay *r)
{
    r->policy.destroy(r->policy.self);
    for (unsigned s = 0; s < r->streams; s++) {
        free(r->pending[s]);
    }
    free(r->piece);
    free(r->live);
}

static void buffer_free(struct replay *r, uint32_t id)
{
    const struct policy *p = &r->policy;
    unsigned stream = id % r->streams;
    uint64_t point = ++r->point[stream];
    if (r->behind == 0) {
        p->free(p->self, &r->piece[id], stream, 0);
    } else if (p->ordered) {
        p->free(p->self, &r->piece[id], stream, point);
        if (p->advance != NULL && point > r->behind) {
            p->advance(p->self, stream, point - r->behind);
        }
    } else {
        struct pool_piece *oldest = &r->pending[stream][(point - 1) % r->behind];
        if (point > r->behind) {
            p->free(p->self, oldest, stream, 0);
        }
        *oldest = r->piece[id];
    }
}

void replay_event(struct replay *r, const struct event *v)
{
    const struct policy *p = &r->policy;
    if (v->size != 0) {
        r->live[v->id] = p->alloc(p->self, v->size, v->id % r->streams, &r->piece[v->id]);
        r->requests++;
        r->refused += !r->live[v->id];
    } else if (r->live[v->id]) {
        r->live[v->id] = false;
        buffer_free(r, v->id);
    }
}

static uint64_t calls_of(const struct replay *r)
{
    return r->policy.calls != NULL ? r->policy.calls(r->policy.self) : 0;
}

void replay_round(struct replay *r, const struct trace *t)
{
    r->calls = calls_of(r);
    for (size_t i = 0; i < t->count; i++) {
        replay_event(r, &t->event[i]);
    }
}

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;
    return *x < *y ? -1 : *x > *y;
}

void replay_round_timed(struct replay *r, const struct trace *t, uint64_t *ret_ns)
{
    r->calls = calls_of(r);
    for (size_t i = 0; i < t->count; i++) {
        uint64_t from = clock_now_ns();
        replay_event(r, &t->event[i]);
        ret_ns[i] = clock_now_ns() - from;
    }
    qsort(ret_ns, t->count, sizeof *ret_ns, by_value);
}

uint64_t replay_calls(const struct replay *r)
{
    return calls_of(r) - r->calls;
}

uint64_t replay_waits(const struct replay *r)
{
    return r->policy.waits != NULL ? r->policy.waits(r->policy.self) : 0;
}

uint64_t replay_percentile(const uint64_t *sorted, size_t count, unsigned percent)
{
    size_t rank = count * percent / 100;
    return sorted[rank < count ? rank : count - 1];
}

struct folder {
    void (*use)(void *user, const char *name, struct trace *t);
    void *user;
};

static void of_file(void *user, const char *name, struct trace *t)
{
    const struct folder *f = user;
    f->use(f->user, name, t);
    trace_finish(t);
}

void replay_traces(const char *folder, unsigned made,
                   void (*use)(void *user, const char *name, struct trace *t), void *user)
{
    for (unsigned seed = 1; seed <= made; seed++) {
        char name[40];
        struct trace t;
        (void)snprintf(name, sizeof name, "made trace %u", seed);
        trace_make(&t, seed);
        use(user, name, &t);
        trace_finish(&t);
    }
    if (folder != NULL) {
        struct folder f = {use, user};
        trace_folder(folder, of_file, &f);
    }
}

uint64_t replay_limit_97(const struct trace *t)
{
    return t->peak / 97 * 100;
}

uint64_t replay_limit_125(const struct trace *t)
{
    return t->peak / 4 * 5;
}
