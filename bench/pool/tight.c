#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/pool/load.h"
#include "bench/pool/parts.h"
#include "bench/pool/policy.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define GIB (KIB * MIB)

static void add_peak(struct report *r, const char *name, const struct policy *p, uint64_t peak)
{
    report_add(r, "tight", name, p->name, "mapped_over_live",
               (double)p->peak(p->self) / (double)peak);
}

/* ---- churn ------------------------------------------------------------------------------------*/

struct held {
    struct pool_piece piece;
    uint64_t size;
};

/* Allocates sizes of all magnitudes from low to high, and frees random pieces to keep at most
 * `most` bytes alive. */
static void churn(struct report *r, const char *name, const struct policy *p, uint64_t low,
                  uint64_t high, uint64_t most, uint64_t operations)
{
    struct load l;
    struct held *held = bench_calloc(operations, sizeof *held);
    uint64_t count = 0;
    uint64_t live = 0;
    uint64_t peak = 0;
    uint64_t refused = 0;
    load_seed(&l, 1);
    for (uint64_t i = 0; i < operations; i++) {
        uint64_t size = load_log_uniform(&l, low, high);
        while (count > 0 && live + size > most) {
            uint64_t k = load_random(&l, count);
            p->free(p->self, &held[k].piece, 0, 0);
            live -= held[k].size;
            held[k] = held[--count];
        }
        if (p->alloc(p->self, size, 0, &held[count].piece)) {
            held[count++].size = size;
            live += size;
            peak = live > peak ? live : peak;
        } else {
            refused++;
        }
    }
    add_peak(r, name, p, peak);
    report_add(r, "tight", name, p->name, "refused", (double)refused);
    if (p->calls != NULL) {
        report_add(r, "tight", name, p->name, "driver_calls_an_operation",
                   (double)p->calls(p->self) / (double)operations);
    }
    while (count > 0) {
        p->free(p->self, &held[--count].piece, 0, 0);
    }
    free(held);
}

static void churn_all(struct report *r, const char *name, uint64_t low, uint64_t high,
                      uint64_t most, uint64_t operations)
{
    const struct policy_options o = {.limit = most + most / 8, .limit_others = UINT64_MAX};
    for (enum policy_kind kind = POLICY_POOL; kind <= POLICY_BINS; kind++) {
        struct policy p;
        policy_create(kind, &o, &p);
        churn(r, name, &p, low, high, most, operations);
        p.destroy(p.self);
    }
}

/* ---- traces -----------------------------------------------------------------------------------*/

#define ROUNDS 8u

static void replay(struct report *r, const char *name, const struct policy *p,
                   const struct trace *t)
{
    struct pool_piece *piece = bench_calloc(t->buffers, sizeof *piece);
    uint64_t refused = 0;
    uint64_t calls = 0;
    unsigned busy = 0; /* rounds up to the last one with calls */
    for (unsigned round = 0; round < ROUNDS; round++) {
        calls = p->calls != NULL ? p->calls(p->self) : 0;
        for (size_t i = 0; i < t->count; i++) {
            const struct event *v = &t->event[i];
            if (v->size == 0) {
                p->free(p->self, &piece[v->id], 0, 0);
            } else if (!p->alloc(p->self, v->size, 0, &piece[v->id])) {
                refused++;
            }
        }
        busy = p->calls != NULL && p->calls(p->self) > calls ? round + 1 : busy;
    }
    add_peak(r, name, p, t->peak);
    report_add(r, "tight", name, p->name, "refused", (double)refused);
    if (p->calls != NULL) {
        report_add(r, "tight", name, p->name, "driver_calls_last_round",
                   (double)(p->calls(p->self) - calls));
        report_add(r, "tight", name, p->name, "rounds_with_calls", (double)busy);
    }
    free(piece);
}

static void replay_all(const struct settings *s, struct report *r, const char *name,
                       struct trace *t)
{
    trace_scale(t, s->gib * GIB);
    const struct policy_options o = {.limit = s->gib * GIB / 100 * 103, .limit_others = UINT64_MAX};
    for (enum policy_kind kind = POLICY_POOL; kind <= POLICY_BINS; kind++) {
        struct policy p;
        policy_create(kind, &o, &p);
        replay(r, name, &p, t);
        p.destroy(p.self);
    }
    trace_finish(t);
}

struct folder {
    const struct settings *settings;
    struct report *report;
};

static void replay_file(void *user, const char *name, struct trace *t)
{
    const struct folder *f = user;
    replay_all(f->settings, f->report, name, t);
}

void part_tight(const struct settings *s, struct report *r)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        char name[40];
        struct trace t;
        (void)snprintf(name, sizeof name, "made trace %u", (unsigned)seed);
        trace_make(&t, seed);
        replay_all(s, r, name, &t);
    }
    if (s->traces != NULL) {
        struct folder f = {s, r};
        trace_folder(s->traces, replay_file, &f);
    }
    churn_all(r, "512 B to 2 GiB, 70 GiB", 512, 2 * GIB, 70 * GIB, s->churn / 10);
    churn_all(r, "512 B to 64 MiB, 16 GiB", 512, 64 * MIB, 16 * GIB, s->churn / 10);
    churn_all(r, "64 KiB to 16 MiB, 16 GiB", 64 * KIB, 16 * MIB, 16 * GIB, s->churn / 10);
    churn_all(r, "1 MiB to 8 MiB, 16 GiB", MIB, 8 * MIB, 16 * GIB, s->churn / 10);
    churn_all(r, "256 B to 1 MiB, 4 GiB", 256, MIB, 4 * GIB, s->churn);
    churn_all(r, "256 B to 1 MiB, 1 GiB", 256, MIB, GIB, s->churn);
}
