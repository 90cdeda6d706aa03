/*
 * Debug builds (POOL_GUARD: all but Release) check the state that each call leaves. Every call: the
 * block it touched last, the neighbours and the sums. Once in many calls: everything, by
 * pool_check; the interval grows with the records and pages that this visits, so that it remains
 * cheap. A contradiction ends the process: two pieces that share memory are worse than no memory.
 */
#include <stdlib.h>

#include "common/log.h"
#include "daemon/pool/pool_int.h"

#ifdef POOL_GUARD

#define WALK_EVERY 4096u /* calls between walks of an empty pool */
#define WALK_SHARE 16u   /* more calls for each record and page */

static const char *block_wrong(const struct pool *p, uint32_t i)
{
    const struct block *b = block_at(&p->blocks, i);
    const struct block *before = b->before != BLOCK_NONE ? block_at(&p->blocks, b->before) : NULL;
    const struct block *after = b->after != BLOCK_NONE ? block_at(&p->blocks, b->after) : NULL;
    if (b->state == BLOCK_HELD || b->size == 0) {
        return "is in nobody's hands, or empty";
    }
    if (before != NULL && (before->after != i || before->at + before->size != b->at)) {
        return "does not follow the one before";
    }
    if (after != NULL && (after->before != i || b->at + b->size != after->at)) {
        return "is not followed by the one after";
    }
    return NULL;
}

static const char *sums_wrong(const struct pool *p)
{
    const struct pool_stats *s = &p->stats;
    if (s->asked > s->used || s->used > p->mapped || p->mapped > s->size) {
        return "asked, handed out, charged and taken do not agree";
    }
    if (p->whole_bytes + s->pending + p->warm_bytes > s->size - p->mapped) {
        return "free and charged are more than was taken";
    }
    return s->live != s->allocations - s->frees ? "pieces do not add up" : NULL;
}

void guard_check(struct pool *p, uint32_t block)
{
    const char *what = block != BLOCK_NONE ? block_wrong(p, block) : NULL;
    struct err e = ERR_INIT;
    what = what != NULL ? what : sums_wrong(p);
    if (what != NULL) {
        (void)err_set(&e, ERR_INTERNAL, "pool: %s %u", what, block);
    } else if (p->guard.until_walk-- == 0) {
        uint64_t pages = p->source.pages != NULL ? p->table.frames.made : 0;
        p->guard.until_walk = WALK_EVERY + WALK_SHARE * (pages + p->blocks.live);
        (void)pool_check(p, &e);
    }
    if (e.code != 0) {
        log_say(LOG_POOL_DAMAGED, "%s", e.text);
        abort();
    }
}

#else
typedef int guard_is_off;
#endif
