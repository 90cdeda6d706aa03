#include "daemon/pool/pool_int.h"

/* What a walk over all blocks adds up to. */
struct sums {
    uint64_t at;    /* where the next block has to begin */
    uint64_t taken; /* bytes of the source's memory (sources of blocks) */
    uint64_t used;
    uint64_t live;
    uint64_t charged; /* bytes of blocks that are handed out or cut into objects */
    uint64_t objects; /* bytes of live ones */
    uint64_t empty;   /* slabs */
    uint64_t pending;
    uint64_t warm;
    uint64_t whole;
    uint64_t blocks;
    uint64_t cursors;    /* of sweeps, at a block */
    uint64_t indexed[3]; /* VOID, READY, PENDING */
    uint64_t vacant;     /* blocks */
    uint64_t vacant_bytes;
    uint64_t failed;  /* blocks */
    uint64_t leaving; /* of these blocks: with pages that streams may still use */
};

static int wrong(struct err *e, const struct block *b, const char *what)
{
    return err_set(e, ERR_INTERNAL, "pool: block of %llu bytes at %#llx, state %u: %s", LL(b->size),
                   LL(b->at), (unsigned)b->state, what);
}

static bool mergeable(const struct block *a, const struct block *b)
{
    bool free = a->state == BLOCK_VOID || a->state == BLOCK_READY || a->state == BLOCK_FAILED ||
                (a->state == BLOCK_PENDING && a->stream == b->stream);
    return a->state == b->state && free && !b->edge && a->home == b->home;
}

static int slab_check(const struct pool *p, const struct block *b, struct sums *sums, struct err *e)
{
    const struct slab *s = records_at(&p->slabs, b->owner);
    if (block_at(&p->blocks, s->block) != b || (s->free & s->live) != 0 ||
        b->size != class_bytes(s->class) * s->capacity) {
        return wrong(e, b, "does not agree with its slab");
    }
    if (((b->at | class_bytes(s->class)) & ((UINT64_C(1) << s->align) - 1)) != 0) {
        return wrong(e, b, "its objects are not aligned");
    }
    uint64_t live = (uint64_t)__builtin_popcountll(s->live);
    sums->empty += (unsigned)__builtin_popcountll(s->free) == s->capacity;
    sums->live += live;
    sums->used += live * class_bytes(s->class);
    sums->objects += live * class_bytes(s->class);
    return 0;
}

static int vacant_check(const struct pool *p, const struct block *b, struct sums *sums,
                        struct err *e)
{
    uint64_t end = b->at + b->size;
    uint64_t pages = 0;
    for (uint64_t at = b->at; at < end;) {
        uint64_t there = page_used(p, at, end);
        pages += to_pages(p, there);
        at += there + page_unused(p, at + there, end);
    }
    if (pages != b->owner || (b->at | b->size) % p->page != 0) {
        return wrong(e, b, "has not the pages that it says");
    }
    sums->vacant++;
    sums->vacant_bytes += b->size;
    sums->leaving += pages > 0 && b->seq != 0;
    *(b->seq != 0 ? &sums->pending : &sums->whole) += pages * p->page;
    return 0;
}

/* Every page under a block with memory is mapped, none under one without. */
static int pages_check(const struct pool *p, const struct block *b, struct err *e)
{
    if (b->state == BLOCK_LOST || b->state == BLOCK_VACANT) {
        return 0;
    }
    uint64_t at = b->at & ~(p->page - 1);
    uint64_t end = (b->at + b->size + p->page - 1) & ~(p->page - 1);
    if (b->state == BLOCK_VOID) {
        return page_unused(p, at, end) == end - at ? 0 : wrong(e, b, "has memory, and is void");
    }
    return page_used(p, at, end) == end - at && page_accessible(p, at, end) == end - at
               ? 0
               : wrong(e, b, "pages are not mapped where they are used");
}

static int live_check(const struct block *b, struct sums *sums, struct err *e)
{
    sums->live++;
    sums->used += b->size;
    sums->charged += b->size;
    return (b->at & ((UINT64_C(1) << b->owner) - 1)) == 0 ? 0
                                                          : wrong(e, b, "is not aligned as asked");
}

static int block_check(const struct pool *p, const struct block *b, struct sums *sums,
                       struct err *e)
{
    uint64_t at;
    sums->blocks++;
    sums->taken += b->state == BLOCK_VOID ? 0 : b->size;
    switch ((enum block_state)b->state) {
    case BLOCK_VOID:
        sums->indexed[0] += !b->viewed;
        break;
    case BLOCK_READY:
        sums->indexed[1]++;
        sums->whole += space_whole(p, b, &at);
        if ((b->whole != 0) != (space_whole(p, b, &at) != 0)) {
            return wrong(e, b, "its whole pages are not listed");
        }
        break;
    case BLOCK_PENDING:
        sums->indexed[2]++;
        sums->pending += b->size;
        if (b->stream > joint_line(p) || b->seq <= p->done[b->stream]) {
            return wrong(e, b, "waits for what is past");
        }
        break;
    case BLOCK_LIVE:
        return live_check(b, sums, e);
    case BLOCK_SLAB:
        sums->charged += b->size;
        return slab_check(p, b, sums, e);
    case BLOCK_HELD:
        return wrong(e, b, "was left in nobody's hands");
    case BLOCK_WARM:
        sums->warm += b->size;
        break;
    case BLOCK_VACANT:
        return vacant_check(p, b, sums, e);
    case BLOCK_FAILED:
        sums->failed++;
        break;
    case BLOCK_AWAY:
    case BLOCK_LOST:
        break;
    }
    return 0;
}

static int walk(const struct pool *p, struct sums *sums, struct err *e)
{
    uint32_t before = BLOCK_NONE;
    for (uint32_t i = 0; i != BLOCK_NONE; i = block_at(&p->blocks, i)->after) {
        const struct block *b = block_at(&p->blocks, i);
        if (b->at != sums->at || b->before != before || b->size == 0 || b->size % POOL_ALIGN != 0) {
            return wrong(e, b, "is not where the one before ends");
        }
        if (before != BLOCK_NONE && mergeable(block_at(&p->blocks, before), b)) {
            return wrong(e, b, "could be one with the block before");
        }
        if (p->begins != NULL && by_address(p, b->at + b->size - 1) != i) {
            return wrong(e, b, "is not found by its address");
        }
        int rc = block_check(p, b, sums, e);
        if (rc == 0 && p->source.pages != NULL) {
            rc = pages_check(p, b, e);
        }
        if (rc != 0) {
            return rc;
        }
        for (unsigned k = 0; k < 2; k++) {
            sums->cursors += p->moving.sweep[k].pass != 0 && p->moving.sweep[k].at == i;
        }
        sums->at += b->size;
        before = i;
    }
    return 0;
}

/* ---- indices ----------------------------------------------------------------------------------*/

static uint64_t fit_count(const struct pool *p, const struct fit *f, enum block_state state)
{
    uint64_t count = 0;
    for (unsigned r = 0; r < FIT_ROWS; r++) {
        for (unsigned c = 0; c < FIT_COLUMNS; c++) {
            bool marked = (f->columns[r] >> c & 1) != 0 && (f->rows >> r & 1) != 0;
            if (marked != (f->head[r][c] != BLOCK_NONE)) {
                return UINT64_MAX;
            }
            for (uint32_t i = f->head[r][c]; i != BLOCK_NONE; i = block_at(&p->blocks, i)->next) {
                if (block_at(&p->blocks, i)->state != state) {
                    return UINT64_MAX;
                }
                count++;
            }
        }
    }
    return count;
}

static uint64_t line_count(const struct pool *p, unsigned stream)
{
    uint64_t count = 0;
    uint64_t seq = 0;
    uint64_t whole = 0;
    uint64_t leaving = 0;
    for (uint32_t i = p->line[stream].oldest; i != BLOCK_NONE; i = block_at(&p->blocks, i)->newer) {
        const struct block *b = block_at(&p->blocks, i);
        if (b->seq < seq || b->stream != stream) {
            return UINT64_MAX;
        }
        uint64_t at;
        seq = b->seq;
        count += b->state == BLOCK_PENDING;
        whole += b->state == BLOCK_PENDING ? space_whole(p, b, &at) : 0;
        leaving += b->state == BLOCK_VACANT ? b->owner * p->page : 0;
    }
    return whole == p->pending_whole[stream] && leaving == p->leaving_of[stream] ? count
                                                                                 : UINT64_MAX;
}

static int vacants_check(const struct pool *p, const struct sums *sums, struct err *e)
{
    uint64_t count = 0;
    uint64_t idle = 0;
    bool stuck = p->vacant.stuck != BLOCK_NONE;
    for (uint32_t i = p->vacant.oldest; i != BLOCK_NONE; i = block_at(&p->blocks, i)->next) {
        const struct block *b = block_at(&p->blocks, i);
        count += b->state == BLOCK_VACANT;
        idle += b->owner > 0 && b->seq == 0;
        if (stuck && b->seq <= p->done[b->stream]) {
            return wrong(e, b, "is passed over, and could be given up");
        }
        stuck = stuck && i != p->vacant.stuck;
    }
    for (uint32_t i = p->idle.oldest; i != BLOCK_NONE; i = block_at(&p->blocks, i)->newer) {
        idle--;
    }
    return count == sums->vacant && idle == 0 && !stuck && p->vacant.bytes == sums->vacant_bytes &&
                   p->leaving == sums->leaving
               ? 0
               : err_set(e, ERR_INTERNAL, "pool: %llu of %llu kept places are listed", LL(count),
                         LL(sums->vacant));
}

/* What failed: its blocks are listed, its views counted. */
static int late_check(const struct pool *p, const struct sums *sums, struct err *e)
{
    uint64_t bytes = 0;
    uint64_t listed = 0;
    for (uint32_t i = p->late.first; i != BLOCK_NONE; i = block_at(&p->blocks, i)->next) {
        listed += block_at(&p->blocks, i)->state == BLOCK_FAILED;
    }
    for (uint64_t v = p->source.pages != NULL ? marks_next(&p->table.views, 0) : MARKS_NONE;
         v != MARKS_NONE; v = marks_next(&p->table.views, v + 1)) {
        const struct view *view = &p->table.view[v];
        const struct run *r = records_at(&p->table.runs, view->run);
        bytes += view->late >= VIEW_FAILED ? r->count * p->page : 0;
    }
    return listed == sums->failed && bytes == p->late.failed
               ? 0
               : err_set(e, ERR_INTERNAL,
                         "pool: %llu bytes failed, not %llu; %llu blocks, not %llu", LL(bytes),
                         LL(p->late.failed), LL(sums->failed), LL(listed));
}

static int indices_check(const struct pool *p, const struct sums *sums, struct err *e)
{
    uint64_t pending = 0;
    for (unsigned s = 0; s <= joint_line(p); s++) {
        uint64_t in_fit = fit_count(p, &p->pending[s], BLOCK_PENDING);
        if (in_fit != line_count(p, s)) {
            return err_set(e, ERR_INTERNAL, "pool: what waits for stream %u is listed wrongly", s);
        }
        pending += in_fit;
    }
    if (fit_count(p, &p->void_fit, BLOCK_VOID) != sums->indexed[0] ||
        fit_count(p, &p->ready, BLOCK_READY) != sums->indexed[1] || pending != sums->indexed[2]) {
        return err_set(e, ERR_INTERNAL, "pool: free blocks are not all found by size");
    }
    return late_check(p, sums, e);
}

static int sweeps_check(const struct pool *p, const struct sums *sums, struct err *e)
{
    uint64_t cursors = 0;
    for (unsigned k = 0; k < 2; k++) {
        cursors += p->moving.sweep[k].pass != 0 && p->moving.sweep[k].at != BLOCK_NONE;
    }
    return cursors == sums->cursors
               ? 0
               : err_set(e, ERR_INTERNAL, "pool: moving would go on at a block that is gone");
}

static int meters_check(const struct pool *p, const struct sums *sums, struct err *e)
{
    uint64_t used = 0;
    uint64_t charged = 0;
    uint64_t reserved = 0;
    uint64_t staying = 0;
    uint64_t objects = 0;
    uint64_t tiers = 0;
    int rc = sweeps_check(p, sums, e);
    if (rc != 0) {
        return rc;
    }
    if (sums->empty != p->slabs_empty) {
        return err_set(e, ERR_INTERNAL, "pool: %llu slabs are empty, not %llu", LL(sums->empty),
                       LL(p->slabs_empty));
    }
    for (unsigned t = 0; t < POOL_TENANTS; t++) {
        used += p->account[t].meter.used;
        charged = sat_add(charged, p->account[t].mapped);
        reserved = sat_add(reserved, p->account[t].reserved);
        staying = sat_add(staying, p->account[t].staying);
    }
    for (unsigned c = 0; c < SLAB_CLASSES; c++) {
        objects += p->class[c].used;
    }
    for (unsigned t = 0; t < POOL_TIERS; t++) {
        tiers += p->stats.tier[t].used;
    }
    if (objects != p->stats.tier[POOL_TIER_SLAB].used || objects != sums->objects ||
        tiers != p->stats.used) {
        return err_set(e, ERR_INTERNAL, "pool: tiers hold %llu bytes, objects %llu, not %llu, %llu",
                       LL(tiers), LL(objects), LL(p->stats.used), LL(sums->objects));
    }
    if (charged != p->mapped || charged != sums->charged || quota_due(p) != p->due ||
        reserved != p->reserved || staying != p->staying) {
        return err_set(e, ERR_INTERNAL, "pool: tenants are charged %llu bytes, not %llu, %llu",
                       LL(charged), LL(p->mapped), LL(sums->charged));
    }
    return used == p->stats.used ? 0
                                 : err_set(e, ERR_INTERNAL,
                                           "pool: tenants hold %llu bytes, not "
                                           "%llu",
                                           LL(used), LL(p->stats.used));
}

int pool_check(const struct pool *p, struct err *e)
{
    struct sums sums = {0};
    const struct pool_stats *s = &p->stats;
    int rc = walk(p, &sums, e);
    if (rc != 0) {
        return rc;
    }
    uint64_t size = sums.taken;
    rc = p->source.pages != NULL ? page_table_check(p, &size, e) : 0;
    if (rc != 0) {
        return rc;
    }
    if (sums.at != p->space || sums.blocks != p->blocks.live || size != s->size ||
        sums.used != s->used || sums.live != s->live || sums.pending != s->pending ||
        sums.whole != p->whole_bytes || sums.warm != p->warm_bytes ||
        s->live != s->allocations - s->frees) {
        return err_set(e, ERR_INTERNAL,
                       "pool: blocks add up to %llu bytes taken, %llu used in %llu, %llu pending, "
                       "%llu whole; counted: %llu, %llu in %llu, %llu, %llu",
                       LL(size), LL(sums.used), LL(sums.live), LL(sums.pending), LL(sums.whole),
                       LL(s->size), LL(s->used), LL(s->live), LL(s->pending), LL(p->whole_bytes));
    }
    rc = indices_check(p, &sums, e);
    rc = rc == 0 ? vacants_check(p, &sums, e) : rc;
    return rc != 0 ? rc : meters_check(p, &sums, e);
}
