#include <stddef.h>
#include <utlist.h>

#include "daemon/pool/pool_int.h"

/* What a walk over all runs adds up to. */
struct sums {
    uint64_t size;
    uint64_t used;
    uint64_t cached;
    uint64_t live;
    uint64_t runs_cached;
};

static int pieces_check(const struct run *r, struct err *e)
{
    const struct pieces *c = r->pieces;
    uint32_t live = 0;
    for (uint32_t i = 0; i < CHUNK_PIECES_MAX / WORD_BITS; i++) {
        live += (uint32_t)__builtin_popcountll(c->is_live[i]);
    }
    if (live != c->live) {
        return err_set(e, ERR_INTERNAL, "chunk: %u pieces are live, %u counted", live, c->live);
    }
    if (r->state != RUN_CACHED && (c->fresh > c->count || c->fresh != c->live + c->stack_used)) {
        return err_set(e, ERR_INTERNAL, "chunk: %u of %u used, %u live, %u free", c->fresh,
                       c->count, c->live, c->stack_used);
    }
    for (uint32_t i = 0; r->state != RUN_CACHED && i < c->stack_used; i++) {
        uint32_t index = c->stack[i];
        if (index >= c->fresh || (c->is_live[index / WORD_BITS] >> index % WORD_BITS & 1)) {
            return err_set(e, ERR_INTERNAL, "chunk: piece %u is free and live", index);
        }
    }
    return 0;
}

static int state_check(const struct run *r, struct err *e)
{
    bool chunk = r->pieces != NULL;
    bool fits = false;
    switch (r->state) {
    case RUN_LIVE:
        fits = !chunk;
        break;
    case RUN_PARTIAL:
        fits = chunk && r->pieces->live > 0 && r->pieces->live < r->pieces->count;
        break;
    case RUN_FULL:
        fits = chunk && r->pieces->live == r->pieces->count;
        break;
    case RUN_CACHED:
        fits = (!chunk || r->pieces->live == 0) && !r->odd;
        break;
    }
    if (!fits) {
        return err_set(e, ERR_INTERNAL, "a block of %llu bytes is not in state %d",
                       (unsigned long long)r->size, (int)r->state);
    }
    return 0;
}

static int run_check(const struct run *r, struct sums *sums, struct err *e)
{
    int rc = state_check(r, e);
    if (rc == 0 && r->pieces) {
        rc = pieces_check(r, e);
    }
    sums->size += r->size;
    if (r->state == RUN_CACHED) {
        sums->cached += r->size;
        sums->runs_cached++;
    } else if (r->pieces) {
        sums->live += r->pieces->live;
        sums->used += r->pieces->live * class_bytes(r->class);
    } else {
        sums->live++;
        sums->used += r->size;
    }
    return rc;
}

static uint64_t cached_count(const struct pool *p)
{
    uint64_t count = 0;
    struct run *r = NULL;
    DL_FOREACH(p->empty, r)
    {
        count++;
    }
    for (unsigned class = 0; class < CLASS_COUNT; class ++) {
        DL_FOREACH(p->cached[class], r)
        {
            count++;
        }
    }
    return count;
}

int pool_check(const struct pool *p, struct err *e)
{
    struct sums sums = {0};
    struct run *r = NULL;
    DL_FOREACH2(p->all, r, all_next)
    {
        int rc = run_check(r, &sums, e);
        if (rc != 0) {
            return rc;
        }
    }
    const struct pool_stats *s = &p->stats;
    if (sums.size != s->size || sums.used != s->used || sums.cached != s->cached ||
        sums.live != s->live || s->live != s->allocations - s->frees) {
        return err_set(e, ERR_INTERNAL, "pool: the blocks add up to other numbers than counted");
    }
    uint64_t aged = 0;
    DL_FOREACH2(p->by_age, r, age_next)
    {
        aged++;
    }
    if (aged != sums.runs_cached || aged != cached_count(p)) {
        return err_set(e, ERR_INTERNAL, "pool: the lists of cached blocks differ");
    }
    return 0;
}
